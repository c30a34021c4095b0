 1 push rax
 2 mov rax,distance of librip_tls_1
 3 mov rcx,QWORD PTR fs:[rax]
 4 test rcx,rcx
 5 je outside
 6 mov edx,0x1
 7 xadd QWORD PTR [rcx-0x8],rdx
 8 mov rsi,rdx
 9 and rsi,QWORD PTR [outside]
10 shl rdx,0x31
11 lea rax,[instruction 2]
12 or rdx,rax
13 mov QWORD PTR [rcx+rsi*8],rdx
14 pop rax
15 ret
