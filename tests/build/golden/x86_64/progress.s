 1 push rax
 2 mov rax,distance of librip_tls_1
 3 mov rcx,QWORD PTR fs:[rax]
 4 test rcx,rcx
 5 je outside
 6 mov edx,0x1
 7 xadd QWORD PTR [rcx-0x8],rdx
 8 cmp rdx,QWORD PTR fs:[rax+0x20]
 9 jae outside
10 mov rsi,rdx
11 and rsi,QWORD PTR [outside]
12 shl rdx,0x31
13 lea rax,[instruction 2]
14 or rdx,rax
15 mov QWORD PTR [rcx+rsi*8],rdx
16 pop rax
17 ret
