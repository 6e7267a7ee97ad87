"""General-purpose instructions: integer arithmetic, moves, jumps, control.

One line is one form of one instruction, as the Intel SDM volume 2 prints it: mnemonic, operands, operand encoding
(the column Op/En), encoding. A line that starts with ``@`` opens an entry of the manual: volume, title, latency class,
effect on the flags. Entries are alphabetical in the manual, so the title finds the page in every revision.
``W:`` marks a written operand, ``X:`` one that is read and written, no mark one that is read; ``<eax>`` is an implicit
register. Where several forms fit, the first one is taken. ``insns`` reads this text; it holds no code.
"""
TABLE = """
@ 2A ADD; alu; flags=w
ADD           | X:r8, r/m8                          | RM   | 02 /r
ADD           | X:r16, r/m16                        | RM   | 03 /r
ADD           | X:r32, r/m32                        | RM   | 03 /r
ADD           | X:r64, r/m64                        | RM   | REX.W + 03 /r
ADD           | X:r/m8, r8                          | MR   | 00 /r
ADD           | X:r/m16, r16                        | MR   | 01 /r
ADD           | X:r/m32, r32                        | MR   | 01 /r
ADD           | X:r/m64, r64                        | MR   | REX.W + 01 /r
ADD           | X:r/m8, imm8                        | MI   | 80 /0 ib
ADD           | X:r/m16, imm8                       | MI   | 83 /0 ib
ADD           | X:r/m32, imm8                       | MI   | 83 /0 ib
ADD           | X:r/m64, imm8                       | MI   | REX.W + 83 /0 ib
ADD           | X:r/m16, imm16                      | MI   | 81 /0 iw
ADD           | X:r/m32, imm32                      | MI   | 81 /0 id
ADD           | X:r/m64, imm32                      | MI   | REX.W + 81 /0 id
@ 2A AND; alu; flags=w
AND           | X:r8, r/m8                          | RM   | 22 /r
AND           | X:r16, r/m16                        | RM   | 23 /r
AND           | X:r32, r/m32                        | RM   | 23 /r
AND           | X:r64, r/m64                        | RM   | REX.W + 23 /r
AND           | X:r/m8, r8                          | MR   | 20 /r
AND           | X:r/m16, r16                        | MR   | 21 /r
AND           | X:r/m32, r32                        | MR   | 21 /r
AND           | X:r/m64, r64                        | MR   | REX.W + 21 /r
AND           | X:r/m8, imm8                        | MI   | 80 /4 ib
AND           | X:r/m16, imm8                       | MI   | 83 /4 ib
AND           | X:r/m32, imm8                       | MI   | 83 /4 ib
AND           | X:r/m64, imm8                       | MI   | REX.W + 83 /4 ib
AND           | X:r/m16, imm16                      | MI   | 81 /4 iw
AND           | X:r/m32, imm32                      | MI   | 81 /4 id
AND           | X:r/m64, imm32                      | MI   | REX.W + 81 /4 id
@ 2A CMP; alu; flags=w
CMP           | r8, r/m8                            | RM   | 3A /r
CMP           | r16, r/m16                          | RM   | 3B /r
CMP           | r32, r/m32                          | RM   | 3B /r
CMP           | r64, r/m64                          | RM   | REX.W + 3B /r
CMP           | r/m8, r8                            | MR   | 38 /r
CMP           | r/m16, r16                          | MR   | 39 /r
CMP           | r/m32, r32                          | MR   | 39 /r
CMP           | r/m64, r64                          | MR   | REX.W + 39 /r
CMP           | r/m8, imm8                          | MI   | 80 /7 ib
CMP           | r/m16, imm8                         | MI   | 83 /7 ib
CMP           | r/m32, imm8                         | MI   | 83 /7 ib
CMP           | r/m64, imm8                         | MI   | REX.W + 83 /7 ib
CMP           | r/m16, imm16                        | MI   | 81 /7 iw
CMP           | r/m32, imm32                        | MI   | 81 /7 id
CMP           | r/m64, imm32                        | MI   | REX.W + 81 /7 id
@ 2B OR; alu; flags=w
OR            | X:r8, r/m8                          | RM   | 0A /r
OR            | X:r16, r/m16                        | RM   | 0B /r
OR            | X:r32, r/m32                        | RM   | 0B /r
OR            | X:r64, r/m64                        | RM   | REX.W + 0B /r
OR            | X:r/m8, r8                          | MR   | 08 /r
OR            | X:r/m16, r16                        | MR   | 09 /r
OR            | X:r/m32, r32                        | MR   | 09 /r
OR            | X:r/m64, r64                        | MR   | REX.W + 09 /r
OR            | X:r/m8, imm8                        | MI   | 80 /1 ib
OR            | X:r/m16, imm8                       | MI   | 83 /1 ib
OR            | X:r/m32, imm8                       | MI   | 83 /1 ib
OR            | X:r/m64, imm8                       | MI   | REX.W + 83 /1 ib
OR            | X:r/m16, imm16                      | MI   | 81 /1 iw
OR            | X:r/m32, imm32                      | MI   | 81 /1 id
OR            | X:r/m64, imm32                      | MI   | REX.W + 81 /1 id
@ 2B SUB; alu; flags=w
SUB           | X:r8, r/m8                          | RM   | 2A /r
SUB           | X:r16, r/m16                        | RM   | 2B /r
SUB           | X:r32, r/m32                        | RM   | 2B /r
SUB           | X:r64, r/m64                        | RM   | REX.W + 2B /r
SUB           | X:r/m8, r8                          | MR   | 28 /r
SUB           | X:r/m16, r16                        | MR   | 29 /r
SUB           | X:r/m32, r32                        | MR   | 29 /r
SUB           | X:r/m64, r64                        | MR   | REX.W + 29 /r
SUB           | X:r/m8, imm8                        | MI   | 80 /5 ib
SUB           | X:r/m16, imm8                       | MI   | 83 /5 ib
SUB           | X:r/m32, imm8                       | MI   | 83 /5 ib
SUB           | X:r/m64, imm8                       | MI   | REX.W + 83 /5 ib
SUB           | X:r/m16, imm16                      | MI   | 81 /5 iw
SUB           | X:r/m32, imm32                      | MI   | 81 /5 id
SUB           | X:r/m64, imm32                      | MI   | REX.W + 81 /5 id
@ 2B XOR; alu; flags=w
XOR           | X:r8, r/m8                          | RM   | 32 /r
XOR           | X:r16, r/m16                        | RM   | 33 /r
XOR           | X:r32, r/m32                        | RM   | 33 /r
XOR           | X:r64, r/m64                        | RM   | REX.W + 33 /r
XOR           | X:r/m8, r8                          | MR   | 30 /r
XOR           | X:r/m16, r16                        | MR   | 31 /r
XOR           | X:r/m32, r32                        | MR   | 31 /r
XOR           | X:r/m64, r64                        | MR   | REX.W + 31 /r
XOR           | X:r/m8, imm8                        | MI   | 80 /6 ib
XOR           | X:r/m16, imm8                       | MI   | 83 /6 ib
XOR           | X:r/m32, imm8                       | MI   | 83 /6 ib
XOR           | X:r/m64, imm8                       | MI   | REX.W + 83 /6 ib
XOR           | X:r/m16, imm16                      | MI   | 81 /6 iw
XOR           | X:r/m32, imm32                      | MI   | 81 /6 id
XOR           | X:r/m64, imm32                      | MI   | REX.W + 81 /6 id
@ 2B TEST; alu; flags=w
TEST          | r/m8, r8                            | MR   | 84 /r
TEST          | r/m16, r16                          | MR   | 85 /r
TEST          | r/m32, r32                          | MR   | 85 /r
TEST          | r/m64, r64                          | MR   | REX.W + 85 /r
TEST          | r/m8, imm8                          | MI   | F6 /0 ib
TEST          | r/m16, imm16                        | MI   | F7 /0 iw
TEST          | r/m32, imm32                        | MI   | F7 /0 id
TEST          | r/m64, imm32                        | MI   | REX.W + F7 /0 id
@ 2B MOV; mov
MOV           | W:r8, r/m8                          | RM   | 8A /r
MOV           | W:r16, r/m16                        | RM   | 8B /r
MOV           | W:r32, r/m32                        | RM   | 8B /r
MOV           | W:r64, r/m64                        | RM   | REX.W + 8B /r
MOV           | W:r/m8, r8                          | MR   | 88 /r
MOV           | W:r/m16, r16                        | MR   | 89 /r
MOV           | W:r/m32, r32                        | MR   | 89 /r
MOV           | W:r/m64, r64                        | MR   | REX.W + 89 /r
MOV           | W:r8, imm8                          | OI   | B0+rb ib
MOV           | W:r16, imm16                        | OI   | B8+rw iw
MOV           | W:r32, imm32                        | OI   | B8+rd id
MOV           | W:r64, imm64                        | OI   | REX.W + B8+ro io
MOV           | W:r/m8, imm8                        | MI   | C6 /0 ib
MOV           | W:r/m16, imm16                      | MI   | C7 /0 iw
MOV           | W:r/m32, imm32                      | MI   | C7 /0 id
MOV           | W:r/m64, imm32                      | MI   | REX.W + C7 /0 id
@ 2B MOVZX; alu
MOVZX         | W:r16, r/m8                         | RM   | 0F B6 /r
MOVZX         | W:r32, r/m8                         | RM   | 0F B6 /r
MOVZX         | W:r64, r/m8                         | RM   | REX.W + 0F B6 /r
MOVZX         | W:r16, r/m16                        | RM   | 0F B7 /r
MOVZX         | W:r32, r/m16                        | RM   | 0F B7 /r
MOVZX         | W:r64, r/m16                        | RM   | REX.W + 0F B7 /r
@ 2B MOVSX/MOVSXD; alu
MOVSX         | W:r16, r/m8                         | RM   | 0F BE /r
MOVSX         | W:r32, r/m8                         | RM   | 0F BE /r
MOVSX         | W:r64, r/m8                         | RM   | REX.W + 0F BE /r
MOVSX         | W:r16, r/m16                        | RM   | 0F BF /r
MOVSX         | W:r32, r/m16                        | RM   | 0F BF /r
MOVSX         | W:r64, r/m16                        | RM   | REX.W + 0F BF /r
MOVSXD        | W:r64, r/m32                        | RM   | REX.W + 63 /r
@ 2A LEA; alu
LEA           | W:r32, m                            | RM   | 8D /r
LEA           | W:r64, m                            | RM   | REX.W + 8D /r
@ 2B NEG; alu; flags=w
NEG           | X:r/m8                              | M    | F6 /3
NEG           | X:r/m16                             | M    | F7 /3
NEG           | X:r/m32                             | M    | F7 /3
NEG           | X:r/m64                             | M    | REX.W + F7 /3
@ 2B NOT; alu
NOT           | X:r/m8                              | M    | F6 /2
NOT           | X:r/m16                             | M    | F7 /2
NOT           | X:r/m32                             | M    | F7 /2
NOT           | X:r/m64                             | M    | REX.W + F7 /2
@ 2A IMUL; mul; flags=w
IMUL          | X:r16, r/m16                        | RM   | 0F AF /r
IMUL          | X:r32, r/m32                        | RM   | 0F AF /r
IMUL          | X:r64, r/m64                        | RM   | REX.W + 0F AF /r
IMUL          | W:r16, r/m16, imm8                  | RMI  | 6B /r ib
IMUL          | W:r32, r/m32, imm8                  | RMI  | 6B /r ib
IMUL          | W:r64, r/m64, imm8                  | RMI  | REX.W + 6B /r ib
IMUL          | W:r16, r/m16, imm16                 | RMI  | 69 /r iw
IMUL          | W:r32, r/m32, imm32                 | RMI  | 69 /r id
IMUL          | W:r64, r/m64, imm32                 | RMI  | REX.W + 69 /r id
@ 2A IDIV; div; flags=w
IDIV          | X:<eax>, X:<edx>, r/m32             | M    | F7 /7
IDIV          | X:<rax>, X:<rdx>, r/m64             | M    | REX.W + F7 /7
@ 2A DIV; div; flags=w
DIV           | X:<eax>, X:<edx>, r/m32             | M    | F7 /6
DIV           | X:<rax>, X:<rdx>, r/m64             | M    | REX.W + F7 /6
@ 2A CWD/CDQ/CQO; alu
CDQ           | W:<edx>, <eax>                      | ZO   | 99
CQO           | W:<rdx>, <rax>                      | ZO   | REX.W + 99
@ 2B SAL/SAR/SHL/SHR; alu; flags=w
SHL           | X:r/m8, imm8                        | MI   | C0 /4 ib
SHL           | X:r/m16, imm8                       | MI   | C1 /4 ib
SHL           | X:r/m32, imm8                       | MI   | C1 /4 ib
SHL           | X:r/m64, imm8                       | MI   | REX.W + C1 /4 ib
SHL           | X:r/m8, <cl>                        | M    | D2 /4
SHL           | X:r/m16, <cl>                       | M    | D3 /4
SHL           | X:r/m32, <cl>                       | M    | D3 /4
SHL           | X:r/m64, <cl>                       | M    | REX.W + D3 /4
SHR           | X:r/m8, imm8                        | MI   | C0 /5 ib
SHR           | X:r/m16, imm8                       | MI   | C1 /5 ib
SHR           | X:r/m32, imm8                       | MI   | C1 /5 ib
SHR           | X:r/m64, imm8                       | MI   | REX.W + C1 /5 ib
SHR           | X:r/m8, <cl>                        | M    | D2 /5
SHR           | X:r/m16, <cl>                       | M    | D3 /5
SHR           | X:r/m32, <cl>                       | M    | D3 /5
SHR           | X:r/m64, <cl>                       | M    | REX.W + D3 /5
SAR           | X:r/m8, imm8                        | MI   | C0 /7 ib
SAR           | X:r/m16, imm8                       | MI   | C1 /7 ib
SAR           | X:r/m32, imm8                       | MI   | C1 /7 ib
SAR           | X:r/m64, imm8                       | MI   | REX.W + C1 /7 ib
SAR           | X:r/m8, <cl>                        | M    | D2 /7
SAR           | X:r/m16, <cl>                       | M    | D3 /7
SAR           | X:r/m32, <cl>                       | M    | D3 /7
SAR           | X:r/m64, <cl>                       | M    | REX.W + D3 /7
@ 2C SARX/SHLX/SHRX; alu
SARX          | W:r32, r/m32, r32                   | RMV  | VEX.LZ.F3.0F38.W0 F7 /r
SARX          | W:r64, r/m64, r64                   | RMV  | VEX.LZ.F3.0F38.W1 F7 /r
SHLX          | W:r32, r/m32, r32                   | RMV  | VEX.LZ.66.0F38.W0 F7 /r
SHLX          | W:r64, r/m64, r64                   | RMV  | VEX.LZ.66.0F38.W1 F7 /r
SHRX          | W:r32, r/m32, r32                   | RMV  | VEX.LZ.F2.0F38.W0 F7 /r
SHRX          | W:r64, r/m64, r64                   | RMV  | VEX.LZ.F2.0F38.W1 F7 /r
@ 2A CMOVcc; alu; flags=r
CMOVE         | X:r32, r/m32                        | RM   | 0F 44 /r
CMOVE         | X:r64, r/m64                        | RM   | REX.W + 0F 44 /r
CMOVNE        | X:r32, r/m32                        | RM   | 0F 45 /r
CMOVNE        | X:r64, r/m64                        | RM   | REX.W + 0F 45 /r
CMOVL         | X:r32, r/m32                        | RM   | 0F 4C /r
CMOVL         | X:r64, r/m64                        | RM   | REX.W + 0F 4C /r
CMOVGE        | X:r32, r/m32                        | RM   | 0F 4D /r
CMOVGE        | X:r64, r/m64                        | RM   | REX.W + 0F 4D /r
CMOVLE        | X:r32, r/m32                        | RM   | 0F 4E /r
CMOVLE        | X:r64, r/m64                        | RM   | REX.W + 0F 4E /r
CMOVG         | X:r32, r/m32                        | RM   | 0F 4F /r
CMOVG         | X:r64, r/m64                        | RM   | REX.W + 0F 4F /r
CMOVB         | X:r32, r/m32                        | RM   | 0F 42 /r
CMOVB         | X:r64, r/m64                        | RM   | REX.W + 0F 42 /r
CMOVAE        | X:r32, r/m32                        | RM   | 0F 43 /r
CMOVAE        | X:r64, r/m64                        | RM   | REX.W + 0F 43 /r
CMOVBE        | X:r32, r/m32                        | RM   | 0F 46 /r
CMOVBE        | X:r64, r/m64                        | RM   | REX.W + 0F 46 /r
CMOVA         | X:r32, r/m32                        | RM   | 0F 47 /r
CMOVA         | X:r64, r/m64                        | RM   | REX.W + 0F 47 /r
CMOVS         | X:r32, r/m32                        | RM   | 0F 48 /r
CMOVS         | X:r64, r/m64                        | RM   | REX.W + 0F 48 /r
CMOVNS        | X:r32, r/m32                        | RM   | 0F 49 /r
CMOVNS        | X:r64, r/m64                        | RM   | REX.W + 0F 49 /r
@ 2B SETcc; alu; flags=r
SETE          | W:r/m8                              | M    | 0F 94 /r
SETNE         | W:r/m8                              | M    | 0F 95 /r
SETL          | W:r/m8                              | M    | 0F 9C /r
SETGE         | W:r/m8                              | M    | 0F 9D /r
SETLE         | W:r/m8                              | M    | 0F 9E /r
SETG          | W:r/m8                              | M    | 0F 9F /r
SETB          | W:r/m8                              | M    | 0F 92 /r
SETAE         | W:r/m8                              | M    | 0F 93 /r
SETBE         | W:r/m8                              | M    | 0F 96 /r
SETA          | W:r/m8                              | M    | 0F 97 /r
SETS          | W:r/m8                              | M    | 0F 98 /r
SETNS         | W:r/m8                              | M    | 0F 99 /r
@ 2A Jcc; jump; flags=r
JE            | rel8                                | D    | 74 cb
JE            | rel32                               | D    | 0F 84 cd
JNE           | rel8                                | D    | 75 cb
JNE           | rel32                               | D    | 0F 85 cd
JL            | rel8                                | D    | 7C cb
JL            | rel32                               | D    | 0F 8C cd
JGE           | rel8                                | D    | 7D cb
JGE           | rel32                               | D    | 0F 8D cd
JLE           | rel8                                | D    | 7E cb
JLE           | rel32                               | D    | 0F 8E cd
JG            | rel8                                | D    | 7F cb
JG            | rel32                               | D    | 0F 8F cd
JB            | rel8                                | D    | 72 cb
JB            | rel32                               | D    | 0F 82 cd
JAE           | rel8                                | D    | 73 cb
JAE           | rel32                               | D    | 0F 83 cd
JBE           | rel8                                | D    | 76 cb
JBE           | rel32                               | D    | 0F 86 cd
JA            | rel8                                | D    | 77 cb
JA            | rel32                               | D    | 0F 87 cd
JS            | rel8                                | D    | 78 cb
JS            | rel32                               | D    | 0F 88 cd
JNS           | rel8                                | D    | 79 cb
JNS           | rel32                               | D    | 0F 89 cd
@ 2A JMP; jump
JMP           | rel8                                | D    | EB cb
JMP           | rel32                               | D    | E9 cd
JMP           | r/m64                               | M    | FF /4
@ 2A CALL; jump
CALL          | r/m64                               | M    | FF /2
@ 2B SYSCALL; jump; flags=rw
SYSCALL       |                                     | ZO   | 0F 05
@ 2B PAUSE; fence
PAUSE         |                                     | ZO   | F3 90
@ 2B PUSH; store
PUSH          | r64                                 | O    | 50+ro
@ 2B POP; load
POP           | W:r64                               | O    | 58+ro
@ 2B RET; jump
RET           |                                     | ZO   | C3
@ 2C XCHG; alu
XCHG          | X:r/m32, X:r32                      | MR   | 87 /r
XCHG          | X:r/m64, X:r64                      | MR   | REX.W + 87 /r
@ 2C XADD; alu; flags=w
XADD          | X:r/m32, X:r32                      | MR   | 0F C1 /r
XADD          | X:r/m64, X:r64                      | MR   | REX.W + 0F C1 /r
@ 2A CMPXCHG; alu; flags=w
CMPXCHG       | X:<rax>, X:r/m64, r64               | MR   | REX.W + 0F B1 /r
@ 2B RDTSC; alu
RDTSC         | W:<eax>, W:<edx>                    | ZO   | 0F 31
@ 2A LDMXCSR; load
LDMXCSR       | m32                                 | M    | NP 0F AE /2
@ 2B STMXCSR; store
STMXCSR       | W:m32                               | M    | NP 0F AE /3
@ 2B PREFETCHh; load
PREFETCHNTA   | m8                                  | M    | 0F 18 /0
PREFETCHT0    | m8                                  | M    | 0F 18 /1
PREFETCHT1    | m8                                  | M    | 0F 18 /2
@ 2B MFENCE; fence
MFENCE        |                                     | ZO   | NP 0F AE F0
@ 2B SFENCE; fence
SFENCE        |                                     | ZO   | NP 0F AE F8
"""
