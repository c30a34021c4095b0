    stp x29, x30, [sp, #-16]!
    mov x29, sp
L3:
    mrs x12, TPIDR_EL0
    adrp x8, :gottprel:librip_tls_1
    ldr x8, [x8, :gottprel_lo12:librip_tls_1]
    ldr x8, [x12, x8]
    cbz x8, L1
    sub x11, x8, #8
L2:
    ldxr x9, [x11]
    add x12, x9, #1
    stxr w10, x12, [x11]
    cbnz w10, L2
    adrp x10, librip_module_1
    ldr x10, [x10, :lo12:librip_module_1]
    and x10, x9, x10
    adr x11, L3
    orr x9, x11, x9, lsl #49
    str x9, [x8, x10, lsl #3]
L4:
L1:
    adrp x11, librip_module_1
    add x11, x11, :lo12:librip_module_1
    ldr w11, [x11, #12]
    cbz w11, L4
    adrp x8, :gottprel:librip_tls_1
    ldr x8, [x8, :gottprel_lo12:librip_tls_1]
    add x8, x8, x12
    ldr x8, [x8, #8]
    cbnz x8, L4
    str x30, [sp, #-16]!
    bl librip_enter_1
    ldr x30, [sp], #16
    b L3
    ldp x29, x30, [sp], #16
    ret
