# rustc 1.95.0 (59807616e 2026-04-14)
    push rbp
    push r15
    push r14
    push r13
    push r12
    push rbx
    sub rsp, 40
    mov rbx, rdi
    movzx eax, byte ptr [rdi]
    test al, 2
    je L1
    mov rdi, qword ptr [rip + librip_tls_1@GOTTPOFF]
    mov rdi, qword ptr fs:[rdi]
    test rdi, rdi
    je L2
L19:
    mov rax, qword ptr [rip + librip_module_1@GOTPCREL]
    mov rsi, qword ptr [rax]
    mov eax, dword ptr [rax + 8]
    test al, -2
    jne L2
    mov eax, 2
    mov rcx, qword ptr [rdi - 8]
    add rcx, rax
    add qword ptr [rdi - 8], rax
    cmp qword ptr [rdi - 8], rcx
    jne L3
L4:
L3:
    mov rcx, rax
    xadd qword ptr [rdi - 8], rcx
    add rcx, rax
    jmp L4
    lea rax, [rcx - 2]
    mov r8, rax
    shl r8, 49
    movabs r9, 281474976710648
    mov rdx, rbx
    and rdx, r9
    or r8, rdx
    add r8, r9
    add r8, 10
    and rax, rsi
    mov qword ptr [rdi + 8*rax], r8
    dec rcx
    mov rax, rcx
    shl rax, 49
    lea r8, [rip + .Lanon._.2]
    mov r9, rax
    or r9, r8
    mov r10, rcx
    and r10, rsi
    mov qword ptr [rdi + 8*r10], r9
    mov r9, qword ptr [rdi - 392]
    test r9, r9
    je L5
    lea r8, [rip + .Lanon._.2]
    movabs r9, 288230376151711745
    mov rdx, rbx
    call qword ptr [rip + _ZN6librip4lock5table45_$LT$impl$u20$librip..process..slot..Slot$GT$18enter_lock_further@GOTPCREL]
L21:
    mov r14, rax
    mov ecx, 1
    xor eax, eax
    lock cmpxchg dword ptr [rbx + 8], ecx
    jne L6
L13:
    mov rax, qword ptr [rip + _RNvNtNtCsjrHSEGnQ3l9_3std9panicking11panic_count18GLOBAL_PANIC_COUNT@GOTPCREL]
    mov rax, qword ptr [rax]
    shl rax
    test rax, rax
    jne L7
    xor ebp, ebp
    lea r15, [rbx + 8]
    movzx eax, byte ptr [rbx + 12]
    test al, al
    jne L8
L22:
    test r14, r14
    je L9
    mov rax, qword ptr [rip + librip_tls_1@GOTTPOFF]
    mov rax, qword ptr fs:[rax]
    sub rax, r14
    cmp rax, 513
    jae L10
    movabs rax, 2305843009213693984
    xor rdx, rax
    mov qword ptr [r14 + 8], rdx
L9:
    inc qword ptr [r15 + 8]
L11:
    lea rcx, [rip + L11]
L12:
    lea r8, [rip + L12]
L18:
    movzx edx, bpl
    and edx, 1
    mov rdi, rbx
    mov rsi, r15
    add rsp, 40
    pop rbx
    pop r12
    pop r13
    pop r14
    pop r15
    pop rbp
    jmp _ZN6librip4lock6record10drop_guard
L5:
    mov r14, rdi
    add r14, -400
    or rax, rdx
    lea rcx, [rax + r8]
    movabs rsi, -7046029254386353131
    imul rsi, rcx
    shrd rsi, r8, 56
    movabs rdx, 1441151880758558740
    xor rdx, rsi
    mov qword ptr [rdi - 392], rdx
    mov qword ptr [rdi - 400], rax
    mov ecx, 1
    xor eax, eax
    lock cmpxchg dword ptr [rbx + 8], ecx
    je L13
L6:
    mov r12, rdx
    mov rdi, rsp
    mov rsi, rbx
    call _ZN6librip4lock6record11tried_again
    cmp dword ptr [rsp], 2
    jne L14
    mov rdx, rsp
L15:
    lea r8, [rip + L15]
    lea rax, [rip + .Lanon._.2]
    mov rdi, r14
    mov rsi, r12
    mov rcx, rbx
    call _ZN6librip4lock8protocol11Acquisition10begin_wait
    mov r14, rax
    mov r15, rdx
    mov qword ptr [rsp + 24], rax
    mov qword ptr [rsp + 32], rdx
    mov rdi, rsp
    mov rsi, rbx
    call _ZN6librip4lock4sync5mutex14Mutex$LT$T$GT$4lock28_$u7b$$u7b$closure$u7d$$u7d$
    mov rdi, r14
    mov rsi, r15
    call qword ptr [rip + _ZN6librip4lock8protocol11Acquisition19acquired_after_wait@GOTPCREL]
    mov r15, qword ptr [rsp + 8]
    movzx ebp, byte ptr [rsp + 16]
    test byte ptr [rsp], 1
    je L9
L23:
L16:
    lea rcx, [rip + L16]
L17:
    lea r8, [rip + L17]
    jmp L18
L1:
    mov rdi, rbx
    mov esi, 2
    call qword ptr [rip + _ZN6librip4lock8Identity3set@GOTPCREL]
    mov rdi, qword ptr [rip + librip_tls_1@GOTTPOFF]
    mov rdi, qword ptr fs:[rdi]
    test rdi, rdi
    jne L19
L2:
L20:
    lea rsi, [rip + L20]
    lea rax, [rip + .Lanon._.2]
    mov rdi, rbx
    call _ZN6librip4lock8protocol12begin_slowly
    jmp L21
L7:
    mov r15, rdx
    call qword ptr [rip + _RNvNtNtCsjrHSEGnQ3l9_3std9panicking11panic_count17is_zero_slow_path@GOTPCREL]
    mov rdx, r15
    mov ebp, eax
    xor bpl, 1
    lea r15, [rbx + 8]
    movzx eax, byte ptr [rbx + 12]
    test al, al
    je L22
L8:
    mov rdi, r14
    mov rsi, rdx
    call qword ptr [rip + _ZN6librip4lock6record13acquired_late@GOTPCREL]
    jmp L23
L10:
    mov rdi, r14
    mov rsi, rdx
    call qword ptr [rip + _ZN6librip4lock5table5Entry17acquired_in_child@GOTPCREL]
    jmp L9
L14:
    mov r13, qword ptr [rsp]
    mov r15, qword ptr [rsp + 8]
    movzx ebp, byte ptr [rsp + 16]
    mov rdi, r14
    mov rsi, r12
    call qword ptr [rip + _ZN6librip4lock6record13acquired_late@GOTPCREL]
    test r13b, 1
    je L9
    jmp L23
    mov rbx, rax
    movzx esi, bpl
    mov rdi, r15
    call _ZN4core3ptr106drop_in_place$LT$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$
    jmp L24
    mov rbx, rax
    mov rdi, rsp
    call _ZN4core3ptr184drop_in_place$LT$core..result..Result$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$C$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$$GT$
    jmp L24
    mov rbx, rax
    movzx esi, bpl
    mov rdi, r15
    call _ZN4core3ptr106drop_in_place$LT$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$
    jmp L24
    mov rbx, rax
    mov rdi, rsp
    call _ZN4core3ptr184drop_in_place$LT$core..result..Result$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$C$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$$GT$
    jmp L24
    mov rbx, rax
    lea rdi, [rsp + 24]
    call qword ptr [rip + _ZN71_$LT$librip..lock..record..Waiting$u20$as$u20$core..ops..drop..Drop$GT$4drop@GOTPCREL]
L24:
    mov rdi, rbx
    call _Unwind_Resume@PLT
    call qword ptr [rip + _RNvNtCsgEmfK2I1SDS_4core9panicking16panic_in_cleanup@GOTPCREL]
