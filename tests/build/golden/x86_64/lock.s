# rustc 1.95.0 (59807616e 2026-04-14)
    push rbp
    push r15
    push r14
    push r12
    push rbx
    sub rsp, 48
    mov rbx, rdi
    movzx eax, byte ptr [rdi]
    test al, 2
    je L1
L19:
L2:
    lea r14, [rip + L2]
    lea rax, [rip + .Lanon._.2]
    mov rdi, qword ptr [rip + librip_tls_1@GOTTPOFF]
    mov rdi, qword ptr fs:[rdi]
    test rdi, rdi
    je L3
    mov rcx, qword ptr [rip + librip_module_1@GOTPCREL]
    mov eax, dword ptr [rcx + 8]
    cmp al, 2
    je L3
    movabs rax, 281474976710656
    mov edx, 2
    xadd qword ptr [rdi - 8], rdx
    mov r8, qword ptr [rcx]
    mov rsi, rdx
    shl rsi, 49
    lea rcx, [rax - 8]
    and rcx, rbx
    or rsi, rcx
    or rsi, rax
    mov r9, r8
    and r9, rdx
    mov qword ptr [rdi + 8*r9], rsi
    inc rdx
    mov rsi, rdx
    shl rsi, 49
    mov r9, rsi
    or r9, r14
    and r8, rdx
    mov qword ptr [rdi + 8*r8], r9
    mov r8, qword ptr [rdi - 392]
    movabs r9, 1970324836974592
    test r8, r9
    je L4
    mov rsi, rbx
    mov rcx, r14
    xor r8d, r8d
    call qword ptr [rip + _ZN6librip4lock5table4Slot18enter_lock_further@GOTPCREL]
L18:
    mov r15, rax
    mov r14, rdx
    mov ecx, 1
    xor eax, eax
    lock cmpxchg dword ptr [rbx + 8], ecx
    jne L5
L12:
    mov rax, qword ptr [rip + _RNvNtNtCsjrHSEGnQ3l9_3std9panicking11panic_count18GLOBAL_PANIC_COUNT@GOTPCREL]
    mov rax, qword ptr [rax]
    shl rax
    test rax, rax
    jne L6
    xor ebp, ebp
    lea r12, [rbx + 8]
    movzx eax, byte ptr [rbx + 12]
    test al, al
    jne L7
L20:
    test r15, r15
    je L8
    mov rax, qword ptr [rip + librip_tls_1@GOTTPOFF]
    mov rax, qword ptr fs:[rax]
    sub rax, r15
    cmp rax, 513
    jae L9
    movabs rax, 562949953421312
    xor r14, rax
    mov qword ptr [r15 + 8], r14
L8:
    inc qword ptr [r12 + 8]
L10:
    lea rcx, [rip + L10]
L11:
    lea r8, [rip + L11]
L16:
    movzx edx, bpl
    and edx, 1
    mov rdi, rbx
    mov rsi, r12
    add rsp, 48
    pop rbx
    pop r12
    pop r14
    pop r15
    pop rbp
    jmp _ZN6librip4lock6record10drop_guard
L4:
    mov r15, rdi
    add r15, -400
    shl rdx, 56
    or r14, rax
    or r14, rdx
    mov qword ptr [rdi - 392], r14
    or rcx, rsi
    or rcx, rax
    mov qword ptr [rdi - 400], rcx
    mov ecx, 1
    xor eax, eax
    lock cmpxchg dword ptr [rbx + 8], ecx
    je L12
L5:
L13:
    lea rcx, [rip + L13]
    lea rax, [rip + .Lanon._.2]
    mov rdi, r15
    mov rsi, r14
    mov rdx, rbx
    call _ZN6librip4lock8protocol11Acquisition10begin_wait
    mov r14, rax
    mov r15, rdx
    mov qword ptr [rsp + 32], rax
    mov qword ptr [rsp + 40], rdx
    lea rdi, [rsp + 8]
    mov rsi, rbx
    call _ZN6librip4lock4sync5mutex14Mutex$LT$T$GT$4lock28_$u7b$$u7b$closure$u7d$$u7d$
    mov rdi, r14
    mov rsi, r15
    call qword ptr [rip + _ZN6librip4lock8protocol11Acquisition19acquired_after_wait@GOTPCREL]
    mov r12, qword ptr [rsp + 16]
    movzx ebp, byte ptr [rsp + 24]
    test byte ptr [rsp + 8], 1
    je L8
L21:
L14:
    lea rcx, [rip + L14]
L15:
    lea r8, [rip + L15]
    jmp L16
L3:
L17:
    lea rdx, [rip + L17]
    lea rax, [rip + .Lanon._.2]
    mov rdi, rbx
    mov rsi, r14
    call _ZN6librip4lock8protocol12begin_slowly
    jmp L18
L1:
    mov rdi, rbx
    mov esi, 2
    call qword ptr [rip + _ZN6librip4lock8Identity3set@GOTPCREL]
    jmp L19
L6:
    call qword ptr [rip + _RNvNtNtCsjrHSEGnQ3l9_3std9panicking11panic_count17is_zero_slow_path@GOTPCREL]
    mov ebp, eax
    xor bpl, 1
    lea r12, [rbx + 8]
    movzx eax, byte ptr [rbx + 12]
    test al, al
    je L20
L7:
    mov rdi, r15
    mov rsi, r14
    call qword ptr [rip + _ZN6librip4lock6record17acquired_poisoned@GOTPCREL]
    jmp L21
L9:
    mov rdi, r15
    mov rsi, r14
    call qword ptr [rip + _ZN6librip4lock5table5Entry17acquired_in_child@GOTPCREL]
    jmp L8
    mov rbx, rax
    movzx esi, bpl
    mov rdi, r12
    call _ZN4core3ptr106drop_in_place$LT$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$
    jmp L22
    mov rbx, rax
    movzx esi, bpl
    mov rdi, r12
    call _ZN4core3ptr106drop_in_place$LT$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$
    jmp L22
    mov rbx, rax
    lea rdi, [rsp + 8]
    call _ZN4core3ptr184drop_in_place$LT$core..result..Result$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$C$std..sync..poison..PoisonError$LT$std..sync..poison..mutex..MutexGuard$LT$u64$GT$$GT$$GT$$GT$
    jmp L22
    mov rbx, rax
    lea rdi, [rsp + 32]
    call qword ptr [rip + _ZN71_$LT$librip..lock..record..Waiting$u20$as$u20$core..ops..drop..Drop$GT$4drop@GOTPCREL]
L22:
    mov rdi, rbx
    call _Unwind_Resume@PLT
    call qword ptr [rip + _RNvNtCsgEmfK2I1SDS_4core9panicking16panic_in_cleanup@GOTPCREL]
