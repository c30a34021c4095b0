//! All registers of the processor around a first mark: the cold path saves them.
//!
//! It calls what a mark calls: the symbol is hidden, which does not matter within an executable.

use librip::rip_snap;

use crate::common::{run, say};

#[cfg(target_arch = "x86_64")]
/// Offsets below are those of the fields.
#[repr(C)]
struct Area {
    /// 0: rax, rbx, rcx, rdx, rsi, one unused, rbp, r8 to r15.
    before: [u64; 16],
    /// 128: the same without the unused one; then two mask registers.
    after: [u64; 16],
    /// 256
    wide_before: *const u8,
    /// 264: MXCSR and x87 control word; 272: the same afterwards; 280: MXCSR to continue with.
    control: [u32; 6],
    /// 288
    wide_after: *mut u8,
    /// 296
    stack: u64,
}

#[cfg(target_arch = "x86_64")]
impl Area {
    /// All general registers with a pattern, and the wide ones from and to these buffers.
    fn new(wide_before: &[[u8; 64]], wide_after: &mut [[u8; 64]]) -> Area {
        Area {
            before: std::array::from_fn(|index| 0x0101_0101_0101_0101 * (index as u64 + 3)),
            after: [0; 16],
            wide_before: wide_before.as_ptr().cast(),
            // Round down, flush denormals; single precision: no program sets these by default.
            control: [0xbf80, 0x047f, 0, 0, 0x1f80, 0],
            wide_after: wide_after.as_mut_ptr().cast(),
            stack: 0,
        }
    }

    fn check(&self) {
        let expected: Vec<u64> =
            (0..15).filter(|&index| index != 5).map(|index| self.before[index]).collect();
        assert_eq!(self.after[..14], expected, "general registers");
        assert_eq!(self.control[2], self.control[0], "MXCSR");
        assert_eq!(self.control[3] & 0xffff, self.control[1], "x87 control word");
    }
}

/// Loads all registers, takes the cold path, and stores all registers.
#[cfg(target_arch = "x86_64")]
macro_rules! call_with {
    ($area:expr, $load:expr, $store:expr) => {
        std::arch::asm!(
            "push rbx",
            "push rbp",
            "mov [rdi + 296], rsp",
            "and rsp, -64",
            "ldmxcsr [rdi + 264]",
            "fldcw [rdi + 268]",
            "mov rax, [rdi + 256]",
            $load,
            "mov rax, [rdi]",
            "mov rbx, [rdi + 8]",
            "mov rcx, [rdi + 16]",
            "mov rdx, [rdi + 24]",
            "mov rsi, [rdi + 32]",
            "mov rbp, [rdi + 48]",
            "mov r8, [rdi + 56]",
            "mov r9, [rdi + 64]",
            "mov r10, [rdi + 72]",
            "mov r11, [rdi + 80]",
            "mov r12, [rdi + 88]",
            "mov r13, [rdi + 96]",
            "mov r14, [rdi + 104]",
            "mov r15, [rdi + 112]",
            "call librip_enter_1",
            "mov [rdi + 128], rax",
            "mov [rdi + 136], rbx",
            "mov [rdi + 144], rcx",
            "mov [rdi + 152], rdx",
            "mov [rdi + 160], rsi",
            "mov [rdi + 168], rbp",
            "mov [rdi + 176], r8",
            "mov [rdi + 184], r9",
            "mov [rdi + 192], r10",
            "mov [rdi + 200], r11",
            "mov [rdi + 208], r12",
            "mov [rdi + 216], r13",
            "mov [rdi + 224], r14",
            "mov [rdi + 232], r15",
            "stmxcsr [rdi + 272]",
            "fnstcw [rdi + 276]",
            "mov rax, [rdi + 288]",
            $store,
            "ldmxcsr [rdi + 280]",
            "fninit",
            "mov rsp, [rdi + 296]",
            "pop rbp",
            "pop rbx",
            in("rdi") $area,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            clobber_abi("C"),
        )
    };
}

#[cfg(target_arch = "x86_64")]
/// Calls with the vector registers and two of the mask registers of AVX-512.
fn call_avx512(area: &mut Area) {
    // SAFETY: the caller has asked whether the processor has these registers; the buffers have room for 32 of them.
    unsafe {
        call_with!(
            &raw mut *area,
            "vmovdqu64 zmm0, [rax]
             vmovdqu64 zmm1, [rax + 64]
             vmovdqu64 zmm7, [rax + 448]
             vmovdqu64 zmm15, [rax + 960]
             vmovdqu64 zmm16, [rax + 1024]
             vmovdqu64 zmm31, [rax + 1984]
             mov ecx, 0x5a5a
             kmovw k1, ecx
             mov ecx, 0xa5a5
             kmovw k7, ecx",
            "vmovdqu64 [rax], zmm0
             vmovdqu64 [rax + 64], zmm1
             vmovdqu64 [rax + 448], zmm7
             vmovdqu64 [rax + 960], zmm15
             vmovdqu64 [rax + 1024], zmm16
             vmovdqu64 [rax + 1984], zmm31
             kmovw ecx, k1
             mov [rdi + 240], rcx
             kmovw ecx, k7
             mov [rdi + 248], rcx
             vzeroupper"
        )
    };
}

#[cfg(target_arch = "x86_64")]
/// Calls with the vector registers of AVX.
fn call_avx(area: &mut Area) {
    // SAFETY: the caller has asked whether the processor has these registers; the buffers have room for 32 of them.
    unsafe {
        call_with!(
            &raw mut *area,
            "vmovdqu ymm0, [rax]
             vmovdqu ymm1, [rax + 64]
             vmovdqu ymm7, [rax + 448]
             vmovdqu ymm15, [rax + 960]",
            "vmovdqu [rax], ymm0
             vmovdqu [rax + 64], ymm1
             vmovdqu [rax + 448], ymm7
             vmovdqu [rax + 960], ymm15
             vzeroupper"
        )
    };
}

#[cfg(target_arch = "x86_64")]
/// Calls with the vector registers that every x86-64 processor has.
fn call_sse(area: &mut Area) {
    // SAFETY: the caller has asked whether the processor has these registers; the buffers have room for 32 of them.
    unsafe {
        call_with!(
            &raw mut *area,
            "movdqu xmm0, [rax]
             movdqu xmm1, [rax + 64]
             movdqu xmm7, [rax + 448]
             movdqu xmm15, [rax + 960]",
            "movdqu [rax], xmm0
             movdqu [rax + 64], xmm1
             movdqu [rax + 448], xmm7
             movdqu [rax + 960], xmm15"
        )
    };
}

/// Fills every register with a pattern, takes the cold path, and compares.
#[cfg(target_arch = "x86_64")]
pub(crate) fn registers() {
    run("thread", || {
        let wide_before: Vec<[u8; 64]> = (0..32u8)
            .map(|register| std::array::from_fn(|byte| register.wrapping_mul(37).wrapping_add(byte as u8)))
            .collect();
        let mut wide_after = vec![[0u8; 64]; 32];
        let mut area = Area::new(&wide_before, &mut wide_after);
        let (registers, width): (&[usize], usize) = if std::arch::is_x86_feature_detected!("avx512f") {
            call_avx512(&mut area);
            assert_eq!(area.after[14..], [0x5a5a, 0xa5a5], "mask registers");
            (&[0, 1, 7, 15, 16, 31], 64)
        } else if std::arch::is_x86_feature_detected!("avx") {
            call_avx(&mut area);
            (&[0, 1, 7, 15], 32)
        } else {
            call_sse(&mut area);
            (&[0, 1, 7, 15], 16)
        };
        area.check();
        for &register in registers {
            assert_eq!(wide_after[register][..width], wide_before[register][..width], "vector {register}");
        }
        rip_snap!("after all that");
    });
    say("registers were kept");
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn registers() {
    run("thread", || rip_snap!("after all that"));
    say("registers were kept");
}
