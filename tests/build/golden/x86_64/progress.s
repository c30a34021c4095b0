 1 push rax
 2 mov rax,distance of librip_tls_1
 3 mov rax,QWORD PTR fs:[rax]
 4 test rax,rax
 5 je outside
 6 mov ecx,0x1
 7 xadd QWORD PTR [rax-0x10],rcx
 8 mov rdx,rcx
 9 and rdx,QWORD PTR [rax-0x8]
10 shl rcx,0x31
11 lea rsi,[instruction 2]
12 or rcx,rsi
13 mov QWORD PTR [rax+rdx*8],rcx
14 pop rax
15 ret
