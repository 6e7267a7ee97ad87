"""Vector instructions, part 1 (VEX): moves, floating point, conversions (AVX, AVX2, FMA, F16C).

One line is one form of one instruction, as the Intel SDM volume 2 prints it: mnemonic, operands, operand encoding
(the column Op/En), encoding. A line that starts with ``@`` opens an entry of the manual: volume, title, latency class,
effect on the flags. Entries are alphabetical in the manual, so the title finds the page in every revision.
``W:`` marks a written operand, ``X:`` one that is read and written, no mark one that is read; ``<eax>`` is an implicit
register. Where several forms fit, the first one is taken. ``insns`` reads this text; it holds no code.
"""
TABLE = """
@ 2B MOVUPS; mov
VMOVUPS       | W:xmm1, xmm2/m128                   | RM   | VEX.128.0F.WIG 10 /r
VMOVUPS       | W:ymm1, ymm2/m256                   | RM   | VEX.256.0F.WIG 10 /r
VMOVUPS       | W:xmm2/m128, xmm1                   | MR   | VEX.128.0F.WIG 11 /r
VMOVUPS       | W:ymm2/m256, ymm1                   | MR   | VEX.256.0F.WIG 11 /r
@ 2B MOVUPD; mov
VMOVUPD       | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F.WIG 10 /r
VMOVUPD       | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F.WIG 10 /r
VMOVUPD       | W:xmm2/m128, xmm1                   | MR   | VEX.128.66.0F.WIG 11 /r
VMOVUPD       | W:ymm2/m256, ymm1                   | MR   | VEX.256.66.0F.WIG 11 /r
@ 2B MOVAPS; mov
VMOVAPS       | W:xmm1, xmm2/m128                   | RM   | VEX.128.0F.WIG 28 /r
VMOVAPS       | W:ymm1, ymm2/m256                   | RM   | VEX.256.0F.WIG 28 /r
VMOVAPS       | W:xmm2/m128, xmm1                   | MR   | VEX.128.0F.WIG 29 /r
VMOVAPS       | W:ymm2/m256, ymm1                   | MR   | VEX.256.0F.WIG 29 /r
@ 2B MOVDQU; mov
VMOVDQU       | W:xmm1, xmm2/m128                   | RM   | VEX.128.F3.0F.WIG 6F /r
VMOVDQU       | W:ymm1, ymm2/m256                   | RM   | VEX.256.F3.0F.WIG 6F /r
VMOVDQU       | W:xmm2/m128, xmm1                   | MR   | VEX.128.F3.0F.WIG 7F /r
VMOVDQU       | W:ymm2/m256, ymm1                   | MR   | VEX.256.F3.0F.WIG 7F /r
@ 2B MOVDQA; mov
VMOVDQA       | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F.WIG 6F /r
VMOVDQA       | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F.WIG 6F /r
VMOVDQA       | W:xmm2/m128, xmm1                   | MR   | VEX.128.66.0F.WIG 7F /r
VMOVDQA       | W:ymm2/m256, ymm1                   | MR   | VEX.256.66.0F.WIG 7F /r
@ 2B MOVSS; mov
VMOVSS        | W:xmm1, xmm2, xmm3                  | RVM  | VEX.LIG.F3.0F.WIG 10 /r
VMOVSS        | W:xmm1, m32                         | RM   | VEX.LIG.F3.0F.WIG 10 /r
VMOVSS        | W:m32, xmm1                         | MR   | VEX.LIG.F3.0F.WIG 11 /r
@ 2B MOVSD; mov
VMOVSD        | W:xmm1, xmm2, xmm3                  | RVM  | VEX.LIG.F2.0F.WIG 10 /r
VMOVSD        | W:xmm1, m64                         | RM   | VEX.LIG.F2.0F.WIG 10 /r
VMOVSD        | W:m64, xmm1                         | MR   | VEX.LIG.F2.0F.WIG 11 /r
@ 2B MOVD/MOVQ; xfer
VMOVD         | W:xmm1, r/m32                       | RM   | VEX.128.66.0F.W0 6E /r
VMOVD         | W:r/m32, xmm1                       | MR   | VEX.128.66.0F.W0 7E /r
VMOVQ         | W:xmm1, xmm2/m64                    | RM   | VEX.128.F3.0F.WIG 7E /r
VMOVQ         | W:xmm1/m64, xmm2                    | MR   | VEX.128.66.0F.WIG D6 /r
VMOVQ         | W:xmm1, r/m64                       | RM   | VEX.128.66.0F.W1 6E /r
VMOVQ         | W:r/m64, xmm1                       | MR   | VEX.128.66.0F.W1 7E /r
@ 2B MOVLHPS; shuf
VMOVLHPS      | W:xmm1, xmm2, xmm3                  | RVM  | VEX.128.0F.WIG 16 /r
@ 2B MOVHLPS; shuf
VMOVHLPS      | W:xmm1, xmm2, xmm3                  | RVM  | VEX.128.0F.WIG 12 /r
@ 2B MOVDDUP; shuf
VMOVDDUP      | W:xmm1, xmm2/m64                    | RM   | VEX.128.F2.0F.WIG 12 /r
VMOVDDUP      | W:ymm1, ymm2/m256                   | RM   | VEX.256.F2.0F.WIG 12 /r
@ 2B MOVHPS; shuf
VMOVHPS       | W:xmm2, xmm1, m64                   | RVM  | VEX.128.0F.WIG 16 /r
VMOVHPS       | W:m64, xmm1                         | MR   | VEX.128.0F.WIG 17 /r
@ 2B MOVNTPS; store
VMOVNTPS      | W:m128, xmm1                        | MR   | VEX.128.0F.WIG 2B /r
VMOVNTPS      | W:m256, ymm1                        | MR   | VEX.256.0F.WIG 2B /r
@ 2B MOVNTPD; store
VMOVNTPD      | W:m128, xmm1                        | MR   | VEX.128.66.0F.WIG 2B /r
VMOVNTPD      | W:m256, ymm1                        | MR   | VEX.256.66.0F.WIG 2B /r
@ 2B MOVNTDQ; store
VMOVNTDQ      | W:m128, xmm1                        | MR   | VEX.128.66.0F.WIG E7 /r
VMOVNTDQ      | W:m256, ymm1                        | MR   | VEX.256.66.0F.WIG E7 /r
@ 2B MOVNTDQA; load
VMOVNTDQA     | W:xmm1, m128                        | RM   | VEX.128.66.0F38.WIG 2A /r
VMOVNTDQA     | W:ymm1, m256                        | RM   | VEX.256.66.0F38.WIG 2A /r
@ 2C VBROADCAST; shuf
VBROADCASTSS  | W:xmm1, m32                         | RM   | VEX.128.66.0F38.W0 18 /r
VBROADCASTSS  | W:ymm1, m32                         | RM   | VEX.256.66.0F38.W0 18 /r
VBROADCASTSS  | W:xmm1, xmm2                        | RM   | VEX.128.66.0F38.W0 18 /r
VBROADCASTSS  | W:ymm1, xmm2                        | RM   | VEX.256.66.0F38.W0 18 /r
VBROADCASTSD  | W:ymm1, m64                         | RM   | VEX.256.66.0F38.W0 19 /r
VBROADCASTSD  | W:ymm1, xmm2                        | RM   | VEX.256.66.0F38.W0 19 /r
VBROADCASTF128 | W:ymm1, m128                        | RM   | VEX.256.66.0F38.W0 1A /r
@ 2C VPBROADCAST; shuf
VPBROADCASTB  | W:xmm1, xmm2/m8                     | RM   | VEX.128.66.0F38.W0 78 /r
VPBROADCASTB  | W:ymm1, xmm2/m8                     | RM   | VEX.256.66.0F38.W0 78 /r
VPBROADCASTW  | W:xmm1, xmm2/m16                    | RM   | VEX.128.66.0F38.W0 79 /r
VPBROADCASTW  | W:ymm1, xmm2/m16                    | RM   | VEX.256.66.0F38.W0 79 /r
VPBROADCASTD  | W:xmm1, xmm2/m32                    | RM   | VEX.128.66.0F38.W0 58 /r
VPBROADCASTD  | W:ymm1, xmm2/m32                    | RM   | VEX.256.66.0F38.W0 58 /r
VPBROADCASTQ  | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.W0 59 /r
VPBROADCASTQ  | W:ymm1, xmm2/m64                    | RM   | VEX.256.66.0F38.W0 59 /r
VBROADCASTI128 | W:ymm1, m128                        | RM   | VEX.256.66.0F38.W0 5A /r
@ 2A ADDPS; fp
VADDPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 58 /r
VADDPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 58 /r
@ 2A ADDPD; fp
VADDPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 58 /r
VADDPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 58 /r
@ 2A ADDSS; fp
VADDSS        | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 58 /r
@ 2A ADDSD; fp
VADDSD        | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 58 /r
@ 2B SUBPS; fp
VSUBPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 5C /r
VSUBPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 5C /r
@ 2B SUBPD; fp
VSUBPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 5C /r
VSUBPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 5C /r
@ 2B SUBSS; fp
VSUBSS        | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 5C /r
@ 2B SUBSD; fp
VSUBSD        | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 5C /r
@ 2B MULPS; fp
VMULPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 59 /r
VMULPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 59 /r
@ 2B MULPD; fp
VMULPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 59 /r
VMULPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 59 /r
@ 2B MULSS; fp
VMULSS        | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 59 /r
@ 2B MULSD; fp
VMULSD        | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 59 /r
@ 2A DIVPS; fdiv
VDIVPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 5E /r
VDIVPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 5E /r
@ 2A DIVPD; fdiv
VDIVPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 5E /r
VDIVPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 5E /r
@ 2A DIVSS; fdiv
VDIVSS        | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 5E /r
@ 2A DIVSD; fdiv
VDIVSD        | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 5E /r
@ 2B MINPS; fp
VMINPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 5D /r
VMINPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 5D /r
@ 2B MINPD; fp
VMINPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 5D /r
VMINPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 5D /r
@ 2B MINSS; fp
VMINSS        | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 5D /r
@ 2B MINSD; fp
VMINSD        | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 5D /r
@ 2B MAXPS; fp
VMAXPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 5F /r
VMAXPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 5F /r
@ 2B MAXPD; fp
VMAXPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 5F /r
VMAXPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 5F /r
@ 2B MAXSS; fp
VMAXSS        | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 5F /r
@ 2B MAXSD; fp
VMAXSD        | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 5F /r
@ 2B SQRTPS; fdiv
VSQRTPS       | W:xmm1, xmm2/m128                   | RM   | VEX.128.0F.WIG 51 /r
VSQRTPS       | W:ymm1, ymm2/m256                   | RM   | VEX.256.0F.WIG 51 /r
@ 2B SQRTPD; fdiv
VSQRTPD       | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F.WIG 51 /r
VSQRTPD       | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F.WIG 51 /r
@ 2B SQRTSS; fdiv
VSQRTSS       | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 51 /r
@ 2B SQRTSD; fdiv
VSQRTSD       | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 51 /r
@ 2A ANDPS; alu
VANDPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 54 /r
VANDPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 54 /r
@ 2A ANDPD; alu
VANDPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 54 /r
VANDPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 54 /r
@ 2A ANDNPS; alu
VANDNPS       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 55 /r
VANDNPS       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 55 /r
@ 2A ANDNPD; alu
VANDNPD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 55 /r
VANDNPD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 55 /r
@ 2B ORPS; alu
VORPS         | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 56 /r
VORPS         | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 56 /r
@ 2B ORPD; alu
VORPD         | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 56 /r
VORPD         | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 56 /r
@ 2B XORPS; alu
VXORPS        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 57 /r
VXORPS        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 57 /r
@ 2B XORPD; alu
VXORPD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 57 /r
VXORPD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 57 /r
@ 2B PAND; alu
VPAND         | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG DB /r
VPAND         | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG DB /r
@ 2B PANDN; alu
VPANDN        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG DF /r
VPANDN        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG DF /r
@ 2B POR; alu
VPOR          | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG EB /r
VPOR          | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG EB /r
@ 2B PXOR; alu
VPXOR         | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG EF /r
VPXOR         | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG EF /r
@ 2A CMPPS; fp
VCMPPS        | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.0F.WIG C2 /r ib
VCMPPS        | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.0F.WIG C2 /r ib
@ 2A CMPPD; fp
VCMPPD        | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F.WIG C2 /r ib
VCMPPD        | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F.WIG C2 /r ib
@ 2A CMPSS; fp
VCMPSS        | W:xmm1, xmm2, xmm3/m32, imm8        | RVMI | VEX.LIG.F3.0F.WIG C2 /r ib
@ 2A CMPSD; fp
VCMPSD        | W:xmm1, xmm2, xmm3/m64, imm8        | RVMI | VEX.LIG.F2.0F.WIG C2 /r ib
@ 2A BLENDPS; alu
VBLENDPS      | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F3A.WIG 0C /r ib
VBLENDPS      | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.WIG 0C /r ib
@ 2A BLENDPD; alu
VBLENDPD      | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F3A.WIG 0D /r ib
VBLENDPD      | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.WIG 0D /r ib
@ 2A BLENDVPS; alu
VBLENDVPS     | W:xmm1, xmm2, xmm3/m128, xmm4       | RVMR | VEX.128.66.0F3A.W0 4A /r /is4
VBLENDVPS     | W:ymm1, ymm2, ymm3/m256, ymm4       | RVMR | VEX.256.66.0F3A.W0 4A /r /is4
@ 2A BLENDVPD; alu
VBLENDVPD     | W:xmm1, xmm2, xmm3/m128, xmm4       | RVMR | VEX.128.66.0F3A.W0 4B /r /is4
VBLENDVPD     | W:ymm1, ymm2, ymm3/m256, ymm4       | RVMR | VEX.256.66.0F3A.W0 4B /r /is4
@ 2B PBLENDVB; alu
VPBLENDVB     | W:xmm1, xmm2, xmm3/m128, xmm4       | RVMR | VEX.128.66.0F3A.W0 4C /r /is4
VPBLENDVB     | W:ymm1, ymm2, ymm3/m256, ymm4       | RVMR | VEX.256.66.0F3A.W0 4C /r /is4
@ 2B PBLENDW; alu
VPBLENDW      | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F3A.WIG 0E /r ib
VPBLENDW      | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.WIG 0E /r ib
@ 2C VPBLENDD; alu
VPBLENDD      | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F3A.W0 02 /r ib
VPBLENDD      | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.W0 02 /r ib
@ 2C VFMADD132PS/VFMADD213PS/VFMADD231PS; fma
VFMADD132PS   | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 98 /r
VFMADD132PS   | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 98 /r
VFMADD213PS   | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 A8 /r
VFMADD213PS   | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 A8 /r
VFMADD231PS   | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 B8 /r
VFMADD231PS   | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 B8 /r
@ 2C VFMADD132PD/VFMADD213PD/VFMADD231PD; fma
VFMADD132PD   | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 98 /r
VFMADD132PD   | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 98 /r
VFMADD213PD   | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 A8 /r
VFMADD213PD   | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 A8 /r
VFMADD231PD   | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 B8 /r
VFMADD231PD   | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 B8 /r
@ 2C VFMADD132SS/VFMADD213SS/VFMADD231SS; fma
VFMADD132SS   | X:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.66.0F38.W0 99 /r
VFMADD213SS   | X:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.66.0F38.W0 A9 /r
VFMADD231SS   | X:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.66.0F38.W0 B9 /r
@ 2C VFMADD132SD/VFMADD213SD/VFMADD231SD; fma
VFMADD132SD   | X:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.66.0F38.W1 99 /r
VFMADD213SD   | X:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.66.0F38.W1 A9 /r
VFMADD231SD   | X:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.66.0F38.W1 B9 /r
@ 2C VFNMADD132PS/VFNMADD213PS/VFNMADD231PS; fma
VFNMADD132PS  | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 9C /r
VFNMADD132PS  | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 9C /r
VFNMADD213PS  | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 AC /r
VFNMADD213PS  | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 AC /r
VFNMADD231PS  | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 BC /r
VFNMADD231PS  | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 BC /r
@ 2C VFNMADD132PD/VFNMADD213PD/VFNMADD231PD; fma
VFNMADD132PD  | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 9C /r
VFNMADD132PD  | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 9C /r
VFNMADD213PD  | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 AC /r
VFNMADD213PD  | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 AC /r
VFNMADD231PD  | X:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 BC /r
VFNMADD231PD  | X:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 BC /r
@ 2C VFNMADD132SS/VFNMADD213SS/VFNMADD231SS; fma
VFNMADD132SS  | X:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.66.0F38.W0 9D /r
VFNMADD213SS  | X:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.66.0F38.W0 AD /r
VFNMADD231SS  | X:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.66.0F38.W0 BD /r
@ 2C VFNMADD132SD/VFNMADD213SD/VFNMADD231SD; fma
VFNMADD132SD  | X:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.66.0F38.W1 9D /r
VFNMADD213SD  | X:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.66.0F38.W1 AD /r
VFNMADD231SD  | X:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.66.0F38.W1 BD /r
@ 2B ROUNDPS; round
VROUNDPS      | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.66.0F3A.WIG 08 /r ib
VROUNDPS      | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F3A.WIG 08 /r ib
@ 2B ROUNDPD; round
VROUNDPD      | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.66.0F3A.WIG 09 /r ib
VROUNDPD      | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F3A.WIG 09 /r ib
@ 2B ROUNDSS; round
VROUNDSS      | W:xmm1, xmm2, xmm3/m32, imm8        | RVMI | VEX.LIG.66.0F3A.WIG 0A /r ib
@ 2B ROUNDSD; round
VROUNDSD      | W:xmm1, xmm2, xmm3/m64, imm8        | RVMI | VEX.LIG.66.0F3A.WIG 0B /r ib
@ 2A CVTDQ2PS; cvt
VCVTDQ2PS     | W:xmm1, xmm2/m128                   | RM   | VEX.128.0F.WIG 5B /r
VCVTDQ2PS     | W:ymm1, ymm2/m256                   | RM   | VEX.256.0F.WIG 5B /r
@ 2A CVTDQ2PD; cvt
VCVTDQ2PD     | W:xmm1, xmm2/m64                    | RM   | VEX.128.F3.0F.WIG E6 /r
VCVTDQ2PD     | W:ymm1, xmm2/m128                   | RM   | VEX.256.F3.0F.WIG E6 /r
@ 2A CVTPS2DQ; cvt
VCVTPS2DQ     | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F.WIG 5B /r
VCVTPS2DQ     | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F.WIG 5B /r
@ 2A CVTTPS2DQ; cvt
VCVTTPS2DQ    | W:xmm1, xmm2/m128                   | RM   | VEX.128.F3.0F.WIG 5B /r
VCVTTPS2DQ    | W:ymm1, ymm2/m256                   | RM   | VEX.256.F3.0F.WIG 5B /r
@ 2A CVTTPD2DQ; cvt
VCVTTPD2DQ    | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F.WIG E6 /r
VCVTTPD2DQ    | W:xmm1, ymm2/m256                   | RM   | VEX.256.66.0F.WIG E6 /r
@ 2A CVTPD2DQ; cvt
VCVTPD2DQ     | W:xmm1, xmm2/m128                   | RM   | VEX.128.F2.0F.WIG E6 /r
VCVTPD2DQ     | W:xmm1, ymm2/m256                   | RM   | VEX.256.F2.0F.WIG E6 /r
@ 2A CVTPS2PD; cvt
VCVTPS2PD     | W:xmm1, xmm2/m64                    | RM   | VEX.128.0F.WIG 5A /r
VCVTPS2PD     | W:ymm1, xmm2/m128                   | RM   | VEX.256.0F.WIG 5A /r
@ 2A CVTPD2PS; cvt
VCVTPD2PS     | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F.WIG 5A /r
VCVTPD2PS     | W:xmm1, ymm2/m256                   | RM   | VEX.256.66.0F.WIG 5A /r
@ 2A CVTSS2SD; cvt
VCVTSS2SD     | W:xmm1, xmm2, xmm3/m32              | RVM  | VEX.LIG.F3.0F.WIG 5A /r
@ 2A CVTSD2SS; cvt
VCVTSD2SS     | W:xmm1, xmm2, xmm3/m64              | RVM  | VEX.LIG.F2.0F.WIG 5A /r
@ 2A CVTSI2SS; cvt
VCVTSI2SS     | W:xmm1, xmm2, r/m32                 | RVM  | VEX.LIG.F3.0F.W0 2A /r
VCVTSI2SS     | W:xmm1, xmm2, r/m64                 | RVM  | VEX.LIG.F3.0F.W1 2A /r
@ 2A CVTSI2SD; cvt
VCVTSI2SD     | W:xmm1, xmm2, r/m32                 | RVM  | VEX.LIG.F2.0F.W0 2A /r
VCVTSI2SD     | W:xmm1, xmm2, r/m64                 | RVM  | VEX.LIG.F2.0F.W1 2A /r
@ 2A CVTTSS2SI; cvt
VCVTTSS2SI    | W:r32, xmm1/m32                     | RM   | VEX.LIG.F3.0F.W0 2C /r
VCVTTSS2SI    | W:r64, xmm1/m32                     | RM   | VEX.LIG.F3.0F.W1 2C /r
@ 2A CVTTSD2SI; cvt
VCVTTSD2SI    | W:r32, xmm1/m64                     | RM   | VEX.LIG.F2.0F.W0 2C /r
VCVTTSD2SI    | W:r64, xmm1/m64                     | RM   | VEX.LIG.F2.0F.W1 2C /r
@ 2C VCVTPH2PS; cvt
VCVTPH2PS     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.W0 13 /r
VCVTPH2PS     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.W0 13 /r
@ 2C VCVTPS2PH; cvt
VCVTPS2PH     | W:xmm1/m64, xmm2, imm8              | MRI  | VEX.128.66.0F3A.W0 1D /r ib
VCVTPS2PH     | W:xmm1/m128, ymm2, imm8             | MRI  | VEX.256.66.0F3A.W0 1D /r ib
@ 2A HADDPS; fp
VHADDPS       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.F2.0F.WIG 7C /r
VHADDPS       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.F2.0F.WIG 7C /r
"""
