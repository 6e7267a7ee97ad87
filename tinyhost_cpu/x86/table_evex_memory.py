"""Vector instructions, part 3 (EVEX): moves, broadcasts, packed and scattered accesses (AVX-512).

``forms`` says how lines are read.
"""
TABLE = """
@ 2B MOVUPS; mov; feature=avx512f
VMOVUPS       | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.0F.W0 10 /r           | FVM
VMOVUPS       | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.0F.W0 10 /r           | FVM
VMOVUPS       | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.0F.W0 10 /r           | FVM
VMOVUPS       | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.0F.W0 11 /r           | FVM
VMOVUPS       | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.0F.W0 11 /r           | FVM
VMOVUPS       | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.0F.W0 11 /r           | FVM
@ 2B MOVUPD; mov; feature=avx512f
VMOVUPD       | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F.W1 10 /r        | FVM
VMOVUPD       | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F.W1 10 /r        | FVM
VMOVUPD       | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F.W1 10 /r        | FVM
VMOVUPD       | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.66.0F.W1 11 /r        | FVM
VMOVUPD       | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.66.0F.W1 11 /r        | FVM
VMOVUPD       | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.66.0F.W1 11 /r        | FVM
@ 2B MOVAPS; mov; feature=avx512f
VMOVAPS       | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.0F.W0 28 /r           | FVM
VMOVAPS       | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.0F.W0 28 /r           | FVM
VMOVAPS       | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.0F.W0 28 /r           | FVM
VMOVAPS       | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.0F.W0 29 /r           | FVM
VMOVAPS       | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.0F.W0 29 /r           | FVM
VMOVAPS       | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.0F.W0 29 /r           | FVM
@ 2B MOVAPD; mov; feature=avx512f
VMOVAPD       | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F.W1 28 /r        | FVM
VMOVAPD       | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F.W1 28 /r        | FVM
VMOVAPD       | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F.W1 28 /r        | FVM
VMOVAPD       | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.66.0F.W1 29 /r        | FVM
VMOVAPD       | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.66.0F.W1 29 /r        | FVM
VMOVAPD       | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.66.0F.W1 29 /r        | FVM
@ 2B MOVDQU, VMOVDQU8/16/32/64; mov; feature=avx512bw
VMOVDQU8      | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.F2.0F.W0 6F /r        | FVM
VMOVDQU8      | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F2.0F.W0 6F /r        | FVM
VMOVDQU8      | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F2.0F.W0 6F /r        | FVM
VMOVDQU8      | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.F2.0F.W0 7F /r        | FVM
VMOVDQU8      | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.F2.0F.W0 7F /r        | FVM
VMOVDQU8      | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.F2.0F.W0 7F /r        | FVM
VMOVDQU16     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.F2.0F.W1 6F /r        | FVM
VMOVDQU16     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F2.0F.W1 6F /r        | FVM
VMOVDQU16     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F2.0F.W1 6F /r        | FVM
VMOVDQU16     | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.F2.0F.W1 7F /r        | FVM
VMOVDQU16     | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.F2.0F.W1 7F /r        | FVM
VMOVDQU16     | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.F2.0F.W1 7F /r        | FVM
@ 2B MOVDQU, VMOVDQU8/16/32/64; mov; feature=avx512f
VMOVDQU32     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.F3.0F.W0 6F /r        | FVM
VMOVDQU32     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F3.0F.W0 6F /r        | FVM
VMOVDQU32     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F3.0F.W0 6F /r        | FVM
VMOVDQU32     | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.F3.0F.W0 7F /r        | FVM
VMOVDQU32     | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.F3.0F.W0 7F /r        | FVM
VMOVDQU32     | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.F3.0F.W0 7F /r        | FVM
VMOVDQU64     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.F3.0F.W1 6F /r        | FVM
VMOVDQU64     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F3.0F.W1 6F /r        | FVM
VMOVDQU64     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F3.0F.W1 6F /r        | FVM
VMOVDQU64     | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.F3.0F.W1 7F /r        | FVM
VMOVDQU64     | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.F3.0F.W1 7F /r        | FVM
VMOVDQU64     | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.F3.0F.W1 7F /r        | FVM
@ 2B MOVDQA, VMOVDQA32/64; mov; feature=avx512f
VMOVDQA32     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F.W0 6F /r        | FVM
VMOVDQA32     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F.W0 6F /r        | FVM
VMOVDQA32     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F.W0 6F /r        | FVM
VMOVDQA32     | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.66.0F.W0 7F /r        | FVM
VMOVDQA32     | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.66.0F.W0 7F /r        | FVM
VMOVDQA32     | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.66.0F.W0 7F /r        | FVM
VMOVDQA64     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F.W1 6F /r        | FVM
VMOVDQA64     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F.W1 6F /r        | FVM
VMOVDQA64     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F.W1 6F /r        | FVM
VMOVDQA64     | W:xmm2/m128{k1}{z}, xmm1                     | MR   | EVEX.128.66.0F.W1 7F /r        | FVM
VMOVDQA64     | W:ymm2/m256{k1}{z}, ymm1                     | MR   | EVEX.256.66.0F.W1 7F /r        | FVM
VMOVDQA64     | W:zmm2/m512{k1}{z}, zmm1                     | MR   | EVEX.512.66.0F.W1 7F /r        | FVM
@ 2B MOVSS; mov; feature=avx512f
VMOVSS        | W:xmm1{k1}{z}, xmm2, xmm3                    | RVM  | EVEX.LIG.F3.0F.W0 10 /r
VMOVSS        | W:xmm1{k1}{z}, m32                           | RM   | EVEX.LIG.F3.0F.W0 10 /r        | T1S
VMOVSS        | W:m32{k1}, xmm1                              | MR   | EVEX.LIG.F3.0F.W0 11 /r        | T1S
@ 2B MOVSD; mov; feature=avx512f
VMOVSD        | W:xmm1{k1}{z}, xmm2, xmm3                    | RVM  | EVEX.LIG.F2.0F.W1 10 /r
VMOVSD        | W:xmm1{k1}{z}, m64                           | RM   | EVEX.LIG.F2.0F.W1 10 /r        | T1S
VMOVSD        | W:m64{k1}, xmm1                              | MR   | EVEX.LIG.F2.0F.W1 11 /r        | T1S
@ 2B MOVD/MOVQ; xfer; feature=avx512f
VMOVD         | W:xmm1, r/m32                                | RM   | EVEX.128.66.0F.W0 6E /r        | T1S
VMOVD         | W:r/m32, xmm1                                | MR   | EVEX.128.66.0F.W0 7E /r        | T1S
VMOVQ         | W:xmm1, r/m64                                | RM   | EVEX.128.66.0F.W1 6E /r        | T1S
VMOVQ         | W:r/m64, xmm1                                | MR   | EVEX.128.66.0F.W1 7E /r        | T1S
VMOVQ         | W:xmm1, xmm2/m64                             | RM   | EVEX.128.F3.0F.W1 7E /r        | T1S
VMOVQ         | W:xmm1/m64, xmm2                             | MR   | EVEX.128.66.0F.W1 D6 /r        | T1S
@ 2B MOVLHPS; shuf; feature=avx512f
VMOVLHPS      | W:xmm1, xmm2, xmm3                           | RVM  | EVEX.128.0F.W0 16 /r
@ 2B MOVHLPS; shuf; feature=avx512f
VMOVHLPS      | W:xmm1, xmm2, xmm3                           | RVM  | EVEX.128.0F.W0 12 /r
@ 2B MOVDDUP; shuf; feature=avx512f
VMOVDDUP      | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.F2.0F.W1 12 /r        | DUP
VMOVDDUP      | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F2.0F.W1 12 /r        | DUP
VMOVDDUP      | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F2.0F.W1 12 /r        | DUP
@ 2B MOVSHDUP; shuf; feature=avx512f
VMOVSHDUP     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.F3.0F.W0 16 /r        | FVM
VMOVSHDUP     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F3.0F.W0 16 /r        | FVM
VMOVSHDUP     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F3.0F.W0 16 /r        | FVM
@ 2B MOVSLDUP; shuf; feature=avx512f
VMOVSLDUP     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.F3.0F.W0 12 /r        | FVM
VMOVSLDUP     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.F3.0F.W0 12 /r        | FVM
VMOVSLDUP     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.F3.0F.W0 12 /r        | FVM
@ 2B MOVHPS; shuf; feature=avx512f
VMOVHPS       | W:xmm2, xmm1, m64                            | RVM  | EVEX.128.0F.W0 16 /r           | T2
VMOVHPS       | W:m64, xmm1                                  | MR   | EVEX.128.0F.W0 17 /r           | T2
@ 2B MOVLPS; shuf; feature=avx512f
VMOVLPS       | W:xmm2, xmm1, m64                            | RVM  | EVEX.128.0F.W0 12 /r           | T2
VMOVLPS       | W:m64, xmm1                                  | MR   | EVEX.128.0F.W0 13 /r           | T2
@ 2B MOVNTPS; store; feature=avx512f
VMOVNTPS      | W:m128, xmm1                                 | MR   | EVEX.128.0F.W0 2B /r           | FVM
VMOVNTPS      | W:m256, ymm1                                 | MR   | EVEX.256.0F.W0 2B /r           | FVM
VMOVNTPS      | W:m512, zmm1                                 | MR   | EVEX.512.0F.W0 2B /r           | FVM
@ 2B MOVNTPD; store; feature=avx512f
VMOVNTPD      | W:m128, xmm1                                 | MR   | EVEX.128.66.0F.W1 2B /r        | FVM
VMOVNTPD      | W:m256, ymm1                                 | MR   | EVEX.256.66.0F.W1 2B /r        | FVM
VMOVNTPD      | W:m512, zmm1                                 | MR   | EVEX.512.66.0F.W1 2B /r        | FVM
@ 2B MOVNTDQ; store; feature=avx512f
VMOVNTDQ      | W:m128, xmm1                                 | MR   | EVEX.128.66.0F.W0 E7 /r        | FVM
VMOVNTDQ      | W:m256, ymm1                                 | MR   | EVEX.256.66.0F.W0 E7 /r        | FVM
VMOVNTDQ      | W:m512, zmm1                                 | MR   | EVEX.512.66.0F.W0 E7 /r        | FVM
@ 2B MOVNTDQA; load; feature=avx512f
VMOVNTDQA     | W:xmm1, m128                                 | RM   | EVEX.128.66.0F38.W0 2A /r      | FVM
VMOVNTDQA     | W:ymm1, m256                                 | RM   | EVEX.256.66.0F38.W0 2A /r      | FVM
VMOVNTDQA     | W:zmm1, m512                                 | RM   | EVEX.512.66.0F38.W0 2A /r      | FVM
@ 2C VBROADCAST; shuf; feature=avx512f
VBROADCASTSS  | W:xmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.128.66.0F38.W0 18 /r      | T1S
VBROADCASTSS  | W:ymm1{k1}{z}, xmm2/m32                      | RM   | EVEX.256.66.0F38.W0 18 /r      | T1S
VBROADCASTSS  | W:zmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.512.66.0F38.W0 18 /r      | T1S
VBROADCASTSD  | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.W1 19 /r      | T1S
VBROADCASTSD  | W:zmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.512.66.0F38.W1 19 /r      | T1S
@ 2C VBROADCAST; shuf; feature=avx512dq
VBROADCASTF32X2 | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.W0 19 /r    | T2
VBROADCASTF32X2 | W:zmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.512.66.0F38.W0 19 /r    | T2
@ 2C VBROADCAST; shuf; feature=avx512f
VBROADCASTF32X4 | W:ymm1{k1}{z}, m128                          | RM   | EVEX.256.66.0F38.W0 1A /r    | T4
VBROADCASTF32X4 | W:zmm1{k1}{z}, m128                          | RM   | EVEX.512.66.0F38.W0 1A /r    | T4
@ 2C VBROADCAST; shuf; feature=avx512dq
VBROADCASTF64X2 | W:ymm1{k1}{z}, m128                          | RM   | EVEX.256.66.0F38.W1 1A /r    | T2
VBROADCASTF64X2 | W:zmm1{k1}{z}, m128                          | RM   | EVEX.512.66.0F38.W1 1A /r    | T2
VBROADCASTF32X8 | W:zmm1{k1}{z}, m256                          | RM   | EVEX.512.66.0F38.W0 1B /r    | T8
@ 2C VBROADCAST; shuf; feature=avx512f
VBROADCASTF64X4 | W:zmm1{k1}{z}, m256                          | RM   | EVEX.512.66.0F38.W1 1B /r    | T4
@ 2C VPBROADCAST; shuf; feature=avx512bw
VPBROADCASTB  | W:xmm1{k1}{z}, xmm2/m8                       | RM   | EVEX.128.66.0F38.W0 78 /r      | T1S
VPBROADCASTB  | W:ymm1{k1}{z}, xmm2/m8                       | RM   | EVEX.256.66.0F38.W0 78 /r      | T1S
VPBROADCASTB  | W:zmm1{k1}{z}, xmm2/m8                       | RM   | EVEX.512.66.0F38.W0 78 /r      | T1S
VPBROADCASTB  | W:xmm1{k1}{z}, r32                           | RM   | EVEX.128.66.0F38.W0 7A /r
VPBROADCASTB  | W:ymm1{k1}{z}, r32                           | RM   | EVEX.256.66.0F38.W0 7A /r
VPBROADCASTB  | W:zmm1{k1}{z}, r32                           | RM   | EVEX.512.66.0F38.W0 7A /r
VPBROADCASTW  | W:xmm1{k1}{z}, xmm2/m16                      | RM   | EVEX.128.66.0F38.W0 79 /r      | T1S
VPBROADCASTW  | W:ymm1{k1}{z}, xmm2/m16                      | RM   | EVEX.256.66.0F38.W0 79 /r      | T1S
VPBROADCASTW  | W:zmm1{k1}{z}, xmm2/m16                      | RM   | EVEX.512.66.0F38.W0 79 /r      | T1S
VPBROADCASTW  | W:xmm1{k1}{z}, r32                           | RM   | EVEX.128.66.0F38.W0 7B /r
VPBROADCASTW  | W:ymm1{k1}{z}, r32                           | RM   | EVEX.256.66.0F38.W0 7B /r
VPBROADCASTW  | W:zmm1{k1}{z}, r32                           | RM   | EVEX.512.66.0F38.W0 7B /r
@ 2C VPBROADCAST; shuf; feature=avx512f
VPBROADCASTD  | W:xmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.128.66.0F38.W0 58 /r      | T1S
VPBROADCASTD  | W:ymm1{k1}{z}, xmm2/m32                      | RM   | EVEX.256.66.0F38.W0 58 /r      | T1S
VPBROADCASTD  | W:zmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.512.66.0F38.W0 58 /r      | T1S
VPBROADCASTD  | W:xmm1{k1}{z}, r32                           | RM   | EVEX.128.66.0F38.W0 7C /r
VPBROADCASTD  | W:ymm1{k1}{z}, r32                           | RM   | EVEX.256.66.0F38.W0 7C /r
VPBROADCASTD  | W:zmm1{k1}{z}, r32                           | RM   | EVEX.512.66.0F38.W0 7C /r
VPBROADCASTQ  | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.W1 59 /r      | T1S
VPBROADCASTQ  | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.W1 59 /r      | T1S
VPBROADCASTQ  | W:zmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.512.66.0F38.W1 59 /r      | T1S
VPBROADCASTQ  | W:xmm1{k1}{z}, r64                           | RM   | EVEX.128.66.0F38.W1 7C /r
VPBROADCASTQ  | W:ymm1{k1}{z}, r64                           | RM   | EVEX.256.66.0F38.W1 7C /r
VPBROADCASTQ  | W:zmm1{k1}{z}, r64                           | RM   | EVEX.512.66.0F38.W1 7C /r
@ 2C VPBROADCAST; shuf; feature=avx512dq
VBROADCASTI32X2 | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.W0 59 /r    | T2
VBROADCASTI32X2 | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.W0 59 /r    | T2
VBROADCASTI32X2 | W:zmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.512.66.0F38.W0 59 /r    | T2
@ 2C VPBROADCAST; shuf; feature=avx512f
VBROADCASTI32X4 | W:ymm1{k1}{z}, m128                          | RM   | EVEX.256.66.0F38.W0 5A /r    | T4
VBROADCASTI32X4 | W:zmm1{k1}{z}, m128                          | RM   | EVEX.512.66.0F38.W0 5A /r    | T4
@ 2C VPBROADCAST; shuf; feature=avx512dq
VBROADCASTI64X2 | W:ymm1{k1}{z}, m128                          | RM   | EVEX.256.66.0F38.W1 5A /r    | T2
VBROADCASTI64X2 | W:zmm1{k1}{z}, m128                          | RM   | EVEX.512.66.0F38.W1 5A /r    | T2
VBROADCASTI32X8 | W:zmm1{k1}{z}, m256                          | RM   | EVEX.512.66.0F38.W0 5B /r    | T8
@ 2C VPBROADCAST; shuf; feature=avx512f
VBROADCASTI64X4 | W:zmm1{k1}{z}, m256                          | RM   | EVEX.512.66.0F38.W1 5B /r    | T4
@ 2C VCOMPRESSPS; shuf; feature=avx512f
VCOMPRESSPS   | W:xmm1/m128{k1}{z}, xmm2                     | MR   | EVEX.128.66.0F38.W0 8A /r      | T1S
VCOMPRESSPS   | W:ymm1/m256{k1}{z}, ymm2                     | MR   | EVEX.256.66.0F38.W0 8A /r      | T1S
VCOMPRESSPS   | W:zmm1/m512{k1}{z}, zmm2                     | MR   | EVEX.512.66.0F38.W0 8A /r      | T1S
@ 2C VCOMPRESSPD; shuf; feature=avx512f
VCOMPRESSPD   | W:xmm1/m128{k1}{z}, xmm2                     | MR   | EVEX.128.66.0F38.W1 8A /r      | T1S
VCOMPRESSPD   | W:ymm1/m256{k1}{z}, ymm2                     | MR   | EVEX.256.66.0F38.W1 8A /r      | T1S
VCOMPRESSPD   | W:zmm1/m512{k1}{z}, zmm2                     | MR   | EVEX.512.66.0F38.W1 8A /r      | T1S
@ 2C VPCOMPRESSD; shuf; feature=avx512f
VPCOMPRESSD   | W:xmm1/m128{k1}{z}, xmm2                     | MR   | EVEX.128.66.0F38.W0 8B /r      | T1S
VPCOMPRESSD   | W:ymm1/m256{k1}{z}, ymm2                     | MR   | EVEX.256.66.0F38.W0 8B /r      | T1S
VPCOMPRESSD   | W:zmm1/m512{k1}{z}, zmm2                     | MR   | EVEX.512.66.0F38.W0 8B /r      | T1S
@ 2C VPCOMPRESSQ; shuf; feature=avx512f
VPCOMPRESSQ   | W:xmm1/m128{k1}{z}, xmm2                     | MR   | EVEX.128.66.0F38.W1 8B /r      | T1S
VPCOMPRESSQ   | W:ymm1/m256{k1}{z}, ymm2                     | MR   | EVEX.256.66.0F38.W1 8B /r      | T1S
VPCOMPRESSQ   | W:zmm1/m512{k1}{z}, zmm2                     | MR   | EVEX.512.66.0F38.W1 8B /r      | T1S
@ 2C VEXPANDPS; shuf; feature=avx512f
VEXPANDPS     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.W0 88 /r      | T1S
VEXPANDPS     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.W0 88 /r      | T1S
VEXPANDPS     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.W0 88 /r      | T1S
@ 2C VEXPANDPD; shuf; feature=avx512f
VEXPANDPD     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.W1 88 /r      | T1S
VEXPANDPD     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.W1 88 /r      | T1S
VEXPANDPD     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.W1 88 /r      | T1S
@ 2C VPEXPANDD; shuf; feature=avx512f
VPEXPANDD     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.W0 89 /r      | T1S
VPEXPANDD     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.W0 89 /r      | T1S
VPEXPANDD     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.W0 89 /r      | T1S
@ 2C VPEXPANDQ; shuf; feature=avx512f
VPEXPANDQ     | W:xmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.128.66.0F38.W1 89 /r      | T1S
VPEXPANDQ     | W:ymm1{k1}{z}, ymm2/m256                     | RM   | EVEX.256.66.0F38.W1 89 /r      | T1S
VPEXPANDQ     | W:zmm1{k1}{z}, zmm2/m512                     | RM   | EVEX.512.66.0F38.W1 89 /r      | T1S
@ 2C VGATHERDPS/VGATHERQPS; gather; feature=avx512f
VGATHERDPS    | X:xmm1{k1}, vm32x                            | RM   | EVEX.128.66.0F38.W0 92 /r      | T1S
VGATHERDPS    | X:ymm1{k1}, vm32y                            | RM   | EVEX.256.66.0F38.W0 92 /r      | T1S
VGATHERDPS    | X:zmm1{k1}, vm32z                            | RM   | EVEX.512.66.0F38.W0 92 /r      | T1S
VGATHERQPS    | X:xmm1{k1}, vm64x                            | RM   | EVEX.128.66.0F38.W0 93 /r      | T1S
VGATHERQPS    | X:xmm1{k1}, vm64y                            | RM   | EVEX.256.66.0F38.W0 93 /r      | T1S
VGATHERQPS    | X:ymm1{k1}, vm64z                            | RM   | EVEX.512.66.0F38.W0 93 /r      | T1S
@ 2C VGATHERDPD/VGATHERQPD; gather; feature=avx512f
VGATHERDPD    | X:xmm1{k1}, vm32x                            | RM   | EVEX.128.66.0F38.W1 92 /r      | T1S
VGATHERDPD    | X:ymm1{k1}, vm32x                            | RM   | EVEX.256.66.0F38.W1 92 /r      | T1S
VGATHERDPD    | X:zmm1{k1}, vm32y                            | RM   | EVEX.512.66.0F38.W1 92 /r      | T1S
VGATHERQPD    | X:xmm1{k1}, vm64x                            | RM   | EVEX.128.66.0F38.W1 93 /r      | T1S
VGATHERQPD    | X:ymm1{k1}, vm64y                            | RM   | EVEX.256.66.0F38.W1 93 /r      | T1S
VGATHERQPD    | X:zmm1{k1}, vm64z                            | RM   | EVEX.512.66.0F38.W1 93 /r      | T1S
@ 2C VPGATHERDD/VPGATHERQD; gather; feature=avx512f
VPGATHERDD    | X:xmm1{k1}, vm32x                            | RM   | EVEX.128.66.0F38.W0 90 /r      | T1S
VPGATHERDD    | X:ymm1{k1}, vm32y                            | RM   | EVEX.256.66.0F38.W0 90 /r      | T1S
VPGATHERDD    | X:zmm1{k1}, vm32z                            | RM   | EVEX.512.66.0F38.W0 90 /r      | T1S
VPGATHERQD    | X:xmm1{k1}, vm64x                            | RM   | EVEX.128.66.0F38.W0 91 /r      | T1S
VPGATHERQD    | X:xmm1{k1}, vm64y                            | RM   | EVEX.256.66.0F38.W0 91 /r      | T1S
VPGATHERQD    | X:ymm1{k1}, vm64z                            | RM   | EVEX.512.66.0F38.W0 91 /r      | T1S
@ 2C VPGATHERDQ/VPGATHERQQ; gather; feature=avx512f
VPGATHERDQ    | X:xmm1{k1}, vm32x                            | RM   | EVEX.128.66.0F38.W1 90 /r      | T1S
VPGATHERDQ    | X:ymm1{k1}, vm32x                            | RM   | EVEX.256.66.0F38.W1 90 /r      | T1S
VPGATHERDQ    | X:zmm1{k1}, vm32y                            | RM   | EVEX.512.66.0F38.W1 90 /r      | T1S
VPGATHERQQ    | X:xmm1{k1}, vm64x                            | RM   | EVEX.128.66.0F38.W1 91 /r      | T1S
VPGATHERQQ    | X:ymm1{k1}, vm64y                            | RM   | EVEX.256.66.0F38.W1 91 /r      | T1S
VPGATHERQQ    | X:zmm1{k1}, vm64z                            | RM   | EVEX.512.66.0F38.W1 91 /r      | T1S
@ 2C VPSCATTERDD/VPSCATTERDQ/VPSCATTERQD/VPSCATTERQQ; store; feature=avx512f
VPSCATTERDD   | W:vm32x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W0 A0 /r      | T1S
VPSCATTERDD   | W:vm32y{k1}, ymm1                            | MR   | EVEX.256.66.0F38.W0 A0 /r      | T1S
VPSCATTERDD   | W:vm32z{k1}, zmm1                            | MR   | EVEX.512.66.0F38.W0 A0 /r      | T1S
VPSCATTERDQ   | W:vm32x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W1 A0 /r      | T1S
VPSCATTERDQ   | W:vm32x{k1}, ymm1                            | MR   | EVEX.256.66.0F38.W1 A0 /r      | T1S
VPSCATTERDQ   | W:vm32y{k1}, zmm1                            | MR   | EVEX.512.66.0F38.W1 A0 /r      | T1S
VPSCATTERQD   | W:vm64x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W0 A1 /r      | T1S
VPSCATTERQD   | W:vm64y{k1}, xmm1                            | MR   | EVEX.256.66.0F38.W0 A1 /r      | T1S
VPSCATTERQD   | W:vm64z{k1}, ymm1                            | MR   | EVEX.512.66.0F38.W0 A1 /r      | T1S
VPSCATTERQQ   | W:vm64x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W1 A1 /r      | T1S
VPSCATTERQQ   | W:vm64y{k1}, ymm1                            | MR   | EVEX.256.66.0F38.W1 A1 /r      | T1S
VPSCATTERQQ   | W:vm64z{k1}, zmm1                            | MR   | EVEX.512.66.0F38.W1 A1 /r      | T1S
@ 2C VSCATTERDPS/VSCATTERDPD/VSCATTERQPS/VSCATTERQPD; store; feature=avx512f
VSCATTERDPS   | W:vm32x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W0 A2 /r      | T1S
VSCATTERDPS   | W:vm32y{k1}, ymm1                            | MR   | EVEX.256.66.0F38.W0 A2 /r      | T1S
VSCATTERDPS   | W:vm32z{k1}, zmm1                            | MR   | EVEX.512.66.0F38.W0 A2 /r      | T1S
VSCATTERDPD   | W:vm32x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W1 A2 /r      | T1S
VSCATTERDPD   | W:vm32x{k1}, ymm1                            | MR   | EVEX.256.66.0F38.W1 A2 /r      | T1S
VSCATTERDPD   | W:vm32y{k1}, zmm1                            | MR   | EVEX.512.66.0F38.W1 A2 /r      | T1S
VSCATTERQPS   | W:vm64x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W0 A3 /r      | T1S
VSCATTERQPS   | W:vm64y{k1}, xmm1                            | MR   | EVEX.256.66.0F38.W0 A3 /r      | T1S
VSCATTERQPS   | W:vm64z{k1}, ymm1                            | MR   | EVEX.512.66.0F38.W0 A3 /r      | T1S
VSCATTERQPD   | W:vm64x{k1}, xmm1                            | MR   | EVEX.128.66.0F38.W1 A3 /r      | T1S
VSCATTERQPD   | W:vm64y{k1}, ymm1                            | MR   | EVEX.256.66.0F38.W1 A3 /r      | T1S
VSCATTERQPD   | W:vm64z{k1}, zmm1                            | MR   | EVEX.512.66.0F38.W1 A3 /r      | T1S
"""
