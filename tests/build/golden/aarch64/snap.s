    stp x29, x30, [sp, #-16]!
    mov x29, sp
L3:
    mrs x13, TPIDR_EL0
    adrp x9, :gottprel:librip_tls_1
    ldr x9, [x9, :gottprel_lo12:librip_tls_1]
    add x8, x13, x9
    ldr x9, [x8]
    cbz x9, L1
    sub x12, x9, #8
L2:
    ldxr x10, [x12]
    add x13, x10, #1
    stxr w11, x13, [x12]
    cbnz w11, L2
    adrp x11, librip_module_1
    ldr x11, [x11, :lo12:librip_module_1]
    and x11, x10, x11
    adr x12, L3
    orr x10, x12, x10, lsl #49
    str x10, [x9, x11, lsl #3]
L4:
L1:
    adrp x12, librip_module_1
    add x12, x12, :lo12:librip_module_1
    ldr w12, [x12, #12]
    cbz w12, L4
    ldr x9, [x8, #8]
    cbnz x9, L4
    str x30, [sp, #-16]!
    bl librip_enter_1
    ldr x30, [sp], #16
    b L3
    ldp x29, x30, [sp], #16
    ret
