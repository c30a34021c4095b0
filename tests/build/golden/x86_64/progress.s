 1 push rax
 2 mov rax,distance of librip_tls_1
 3 mov rcx,QWORD PTR fs:[rax]
 4 test rcx,rcx
 5 je outside
 6 mov rdx,QWORD PTR [rcx-0x8]
 7 lea rsi,[rdx+0x1]
 8 add QWORD PTR [rcx-0x8],0x1
 9 cmp QWORD PTR [rcx-0x8],rsi
10 jne outside
11 cmp rdx,QWORD PTR fs:[rax+0x20]
12 jae outside
13 mov rsi,rdx
14 and rsi,QWORD PTR [outside]
15 shl rdx,0x31
16 lea rax,[instruction 2]
17 or rdx,rax
18 mov QWORD PTR [rcx+rsi*8],rdx
19 pop rax
20 ret
