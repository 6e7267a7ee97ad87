"""Vector instructions, part 2 (VEX): integers, shuffles, masked and gathered accesses (AVX, AVX2).

One line is one form of one instruction, as the Intel SDM volume 2 prints it: mnemonic, operands, operand encoding
(the column Op/En), encoding. A line that starts with ``@`` opens an entry of the manual: volume, title, latency class,
effect on the flags. Entries are alphabetical in the manual, so the title finds the page in every revision.
``W:`` marks a written operand, ``X:`` one that is read and written, no mark one that is read; ``<eax>`` is an implicit
register. Where several forms fit, the first one is taken. ``insns`` reads this text; it holds no code.
"""
TABLE = """
@ 2B PADDB/PADDW/PADDD/PADDQ; alu
VPADDB        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG FC /r
VPADDB        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG FC /r
VPADDW        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG FD /r
VPADDW        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG FD /r
VPADDD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG FE /r
VPADDD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG FE /r
VPADDQ        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG D4 /r
VPADDQ        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG D4 /r
@ 2B PSUBB/PSUBW/PSUBD; alu
VPSUBB        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F8 /r
VPSUBB        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG F8 /r
VPSUBW        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F9 /r
VPSUBW        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG F9 /r
VPSUBD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG FA /r
VPSUBD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG FA /r
@ 2B PSUBQ; alu
VPSUBQ        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG FB /r
VPSUBQ        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG FB /r
@ 2B PMULLW; mul
VPMULLW       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG D5 /r
VPMULLW       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG D5 /r
@ 2B PMULLD/PMULLQ; mul2
VPMULLD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 40 /r
VPMULLD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 40 /r
@ 2B PMULUDQ; mul
VPMULUDQ      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F4 /r
VPMULUDQ      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG F4 /r
@ 2B PMULDQ; mul
VPMULDQ       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 28 /r
VPMULDQ       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 28 /r
@ 2B PMULHW; mul
VPMULHW       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG E5 /r
VPMULHW       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG E5 /r
@ 2B PMULHUW; mul
VPMULHUW      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG E4 /r
VPMULHUW      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG E4 /r
@ 2B PMADDWD; mul
VPMADDWD      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F5 /r
VPMADDWD      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG F5 /r
@ 2B PMINSB/PMINSW; alu
VPMINSB       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 38 /r
VPMINSB       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 38 /r
VPMINSW       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG EA /r
VPMINSW       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG EA /r
@ 2B PMINSD/PMINSQ; alu
VPMINSD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 39 /r
VPMINSD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 39 /r
@ 2B PMINUB/PMINUW; alu
VPMINUB       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG DA /r
VPMINUB       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG DA /r
VPMINUW       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 3A /r
VPMINUW       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 3A /r
@ 2B PMINUD/PMINUQ; alu
VPMINUD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 3B /r
VPMINUD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 3B /r
@ 2B PMAXSB/PMAXSW; alu
VPMAXSB       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 3C /r
VPMAXSB       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 3C /r
VPMAXSW       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG EE /r
VPMAXSW       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG EE /r
@ 2B PMAXSD/PMAXSQ; alu
VPMAXSD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 3D /r
VPMAXSD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 3D /r
@ 2B PMAXUB/PMAXUW; alu
VPMAXUB       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG DE /r
VPMAXUB       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG DE /r
VPMAXUW       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 3E /r
VPMAXUW       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 3E /r
@ 2B PMAXUD/PMAXUQ; alu
VPMAXUD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 3F /r
VPMAXUD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 3F /r
@ 2B PCMPEQB/PCMPEQW/PCMPEQD; alu
VPCMPEQB      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 74 /r
VPCMPEQB      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 74 /r
VPCMPEQW      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 75 /r
VPCMPEQW      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 75 /r
VPCMPEQD      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 76 /r
VPCMPEQD      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 76 /r
@ 2B PCMPEQQ; alu
VPCMPEQQ      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 29 /r
VPCMPEQQ      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 29 /r
@ 2B PCMPGTB/PCMPGTW/PCMPGTD; alu
VPCMPGTB      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 64 /r
VPCMPGTB      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 64 /r
VPCMPGTW      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 65 /r
VPCMPGTW      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 65 /r
VPCMPGTD      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 66 /r
VPCMPGTD      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 66 /r
@ 2B PCMPGTQ; alu3
VPCMPGTQ      | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 37 /r
VPCMPGTQ      | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 37 /r
@ 2B PABSB/PABSW/PABSD/PABSQ; alu
VPABSB        | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F38.WIG 1C /r
VPABSB        | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F38.WIG 1C /r
VPABSW        | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F38.WIG 1D /r
VPABSW        | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F38.WIG 1D /r
VPABSD        | W:xmm1, xmm2/m128                   | RM   | VEX.128.66.0F38.WIG 1E /r
VPABSD        | W:ymm1, ymm2/m256                   | RM   | VEX.256.66.0F38.WIG 1E /r
@ 2B PSLLW/PSLLD/PSLLQ; alu
VPSLLW        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 71 /6 ib
VPSLLW        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 71 /6 ib
VPSLLW        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F1 /r
VPSLLW        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG F1 /r
VPSLLD        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 72 /6 ib
VPSLLD        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 72 /6 ib
VPSLLD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F2 /r
VPSLLD        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG F2 /r
VPSLLQ        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 73 /6 ib
VPSLLQ        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 73 /6 ib
VPSLLQ        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG F3 /r
VPSLLQ        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG F3 /r
@ 2B PSRLW/PSRLD/PSRLQ; alu
VPSRLW        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 71 /2 ib
VPSRLW        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 71 /2 ib
VPSRLW        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG D1 /r
VPSRLW        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG D1 /r
VPSRLD        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 72 /2 ib
VPSRLD        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 72 /2 ib
VPSRLD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG D2 /r
VPSRLD        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG D2 /r
VPSRLQ        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 73 /2 ib
VPSRLQ        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 73 /2 ib
VPSRLQ        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG D3 /r
VPSRLQ        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG D3 /r
@ 2B PSRAW/PSRAD/PSRAQ; alu
VPSRAW        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 71 /4 ib
VPSRAW        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 71 /4 ib
VPSRAW        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG E1 /r
VPSRAW        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG E1 /r
VPSRAD        | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 72 /4 ib
VPSRAD        | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 72 /4 ib
VPSRAD        | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG E2 /r
VPSRAD        | W:ymm1, ymm2, xmm3/m128             | RVM  | VEX.256.66.0F.WIG E2 /r
@ 2C VPSLLVW/VPSLLVD/VPSLLVQ; alu
VPSLLVD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 47 /r
VPSLLVD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 47 /r
VPSLLVQ       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 47 /r
VPSLLVQ       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 47 /r
@ 2C VPSRLVW/VPSRLVD/VPSRLVQ; alu
VPSRLVD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 45 /r
VPSRLVD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 45 /r
VPSRLVQ       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W1 45 /r
VPSRLVQ       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W1 45 /r
@ 2C VPSRAVW/VPSRAVD/VPSRAVQ; alu
VPSRAVD       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 46 /r
VPSRAVD       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 46 /r
@ 2B PSLLDQ; shuf
VPSLLDQ       | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 73 /7 ib
VPSLLDQ       | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 73 /7 ib
@ 2B PSRLDQ; shuf
VPSRLDQ       | W:xmm1, xmm2, imm8                  | VMI  | VEX.128.66.0F.WIG 73 /3 ib
VPSRLDQ       | W:ymm1, ymm2, imm8                  | VMI  | VEX.256.66.0F.WIG 73 /3 ib
@ 2B PALIGNR; shuf
VPALIGNR      | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F3A.WIG 0F /r ib
VPALIGNR      | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.WIG 0F /r ib
@ 2B MOVMSKPS; xfer
VMOVMSKPS     | W:r32, xmm2                         | RM   | VEX.128.0F.W0 50 /r
VMOVMSKPS     | W:r32, ymm2                         | RM   | VEX.256.0F.W0 50 /r
@ 2B MOVMSKPD; xfer
VMOVMSKPD     | W:r32, xmm2                         | RM   | VEX.128.66.0F.W0 50 /r
VMOVMSKPD     | W:r32, ymm2                         | RM   | VEX.256.66.0F.W0 50 /r
@ 2B PMOVMSKB; xfer
VPMOVMSKB     | W:r32, xmm1                         | RM   | VEX.128.66.0F.W0 D7 /r
VPMOVMSKB     | W:r32, ymm1                         | RM   | VEX.256.66.0F.W0 D7 /r
@ 2B PTEST; alu; flags=w
VPTEST        | xmm1, xmm2/m128                     | RM   | VEX.128.66.0F38.WIG 17 /r
VPTEST        | ymm1, ymm2/m256                     | RM   | VEX.256.66.0F38.WIG 17 /r
@ 2B PMOVSX; shuf
VPMOVSXBW     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.WIG 20 /r
VPMOVSXBW     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.WIG 20 /r
VPMOVSXBD     | W:xmm1, xmm2/m32                    | RM   | VEX.128.66.0F38.WIG 21 /r
VPMOVSXBD     | W:ymm1, xmm2/m64                    | RM   | VEX.256.66.0F38.WIG 21 /r
VPMOVSXBQ     | W:xmm1, xmm2/m16                    | RM   | VEX.128.66.0F38.WIG 22 /r
VPMOVSXBQ     | W:ymm1, xmm2/m32                    | RM   | VEX.256.66.0F38.WIG 22 /r
VPMOVSXWD     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.WIG 23 /r
VPMOVSXWD     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.WIG 23 /r
VPMOVSXWQ     | W:xmm1, xmm2/m32                    | RM   | VEX.128.66.0F38.WIG 24 /r
VPMOVSXWQ     | W:ymm1, xmm2/m64                    | RM   | VEX.256.66.0F38.WIG 24 /r
VPMOVSXDQ     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.WIG 25 /r
VPMOVSXDQ     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.WIG 25 /r
@ 2B PMOVZX; shuf
VPMOVZXBW     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.WIG 30 /r
VPMOVZXBW     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.WIG 30 /r
VPMOVZXBD     | W:xmm1, xmm2/m32                    | RM   | VEX.128.66.0F38.WIG 31 /r
VPMOVZXBD     | W:ymm1, xmm2/m64                    | RM   | VEX.256.66.0F38.WIG 31 /r
VPMOVZXBQ     | W:xmm1, xmm2/m16                    | RM   | VEX.128.66.0F38.WIG 32 /r
VPMOVZXBQ     | W:ymm1, xmm2/m32                    | RM   | VEX.256.66.0F38.WIG 32 /r
VPMOVZXWD     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.WIG 33 /r
VPMOVZXWD     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.WIG 33 /r
VPMOVZXWQ     | W:xmm1, xmm2/m32                    | RM   | VEX.128.66.0F38.WIG 34 /r
VPMOVZXWQ     | W:ymm1, xmm2/m64                    | RM   | VEX.256.66.0F38.WIG 34 /r
VPMOVZXDQ     | W:xmm1, xmm2/m64                    | RM   | VEX.128.66.0F38.WIG 35 /r
VPMOVZXDQ     | W:ymm1, xmm2/m128                   | RM   | VEX.256.66.0F38.WIG 35 /r
@ 2B PACKSSWB/PACKSSDW; shuf
VPACKSSWB     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 63 /r
VPACKSSWB     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 63 /r
VPACKSSDW     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 6B /r
VPACKSSDW     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 6B /r
@ 2B PACKUSDW; shuf
VPACKUSDW     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 2B /r
VPACKUSDW     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 2B /r
@ 2B PACKUSWB; shuf
VPACKUSWB     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 67 /r
VPACKUSWB     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 67 /r
@ 2B PUNPCKLBW/PUNPCKLWD/PUNPCKLDQ/PUNPCKLQDQ; shuf
VPUNPCKLBW    | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 60 /r
VPUNPCKLBW    | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 60 /r
VPUNPCKLWD    | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 61 /r
VPUNPCKLWD    | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 61 /r
VPUNPCKLDQ    | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 62 /r
VPUNPCKLDQ    | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 62 /r
VPUNPCKLQDQ   | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 6C /r
VPUNPCKLQDQ   | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 6C /r
@ 2B PUNPCKHBW/PUNPCKHWD/PUNPCKHDQ/PUNPCKHQDQ; shuf
VPUNPCKHBW    | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 68 /r
VPUNPCKHBW    | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 68 /r
VPUNPCKHWD    | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 69 /r
VPUNPCKHWD    | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 69 /r
VPUNPCKHDQ    | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 6A /r
VPUNPCKHDQ    | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 6A /r
VPUNPCKHQDQ   | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 6D /r
VPUNPCKHQDQ   | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 6D /r
@ 2C UNPCKLPS; shuf
VUNPCKLPS     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 14 /r
VUNPCKLPS     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 14 /r
@ 2C UNPCKHPS; shuf
VUNPCKHPS     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.0F.WIG 15 /r
VUNPCKHPS     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.0F.WIG 15 /r
@ 2C UNPCKLPD; shuf
VUNPCKLPD     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 14 /r
VUNPCKLPD     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 14 /r
@ 2C UNPCKHPD; shuf
VUNPCKHPD     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F.WIG 15 /r
VUNPCKHPD     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F.WIG 15 /r
@ 2B PSHUFB; shuf
VPSHUFB       | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.WIG 00 /r
VPSHUFB       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.WIG 00 /r
@ 2B PSHUFD; shuf
VPSHUFD       | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.66.0F.WIG 70 /r ib
VPSHUFD       | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F.WIG 70 /r ib
@ 2B PSHUFLW; shuf
VPSHUFLW      | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.F2.0F.WIG 70 /r ib
VPSHUFLW      | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.F2.0F.WIG 70 /r ib
@ 2B PSHUFHW; shuf
VPSHUFHW      | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.F3.0F.WIG 70 /r ib
VPSHUFHW      | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.F3.0F.WIG 70 /r ib
@ 2B SHUFPS; shuf
VSHUFPS       | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.0F.WIG C6 /r ib
VSHUFPS       | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.0F.WIG C6 /r ib
@ 2B SHUFPD; shuf
VSHUFPD       | W:xmm1, xmm2, xmm3/m128, imm8       | RVMI | VEX.128.66.0F.WIG C6 /r ib
VSHUFPD       | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F.WIG C6 /r ib
@ 2C VPERMILPS; shuf
VPERMILPS     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 0C /r
VPERMILPS     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 0C /r
VPERMILPS     | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.66.0F3A.W0 04 /r ib
VPERMILPS     | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F3A.W0 04 /r ib
@ 2C VPERMILPD; shuf
VPERMILPD     | W:xmm1, xmm2, xmm3/m128             | RVM  | VEX.128.66.0F38.W0 0D /r
VPERMILPD     | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 0D /r
VPERMILPD     | W:xmm1, xmm2/m128, imm8             | RMI  | VEX.128.66.0F3A.W0 05 /r ib
VPERMILPD     | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F3A.W0 05 /r ib
@ 2C VPERM2F128; cross
VPERM2F128    | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.W0 06 /r ib
@ 2C VPERM2I128; cross
VPERM2I128    | W:ymm1, ymm2, ymm3/m256, imm8       | RVMI | VEX.256.66.0F3A.W0 46 /r ib
@ 2C VPERMPS; cross
VPERMPS       | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 16 /r
@ 2C VPERMQ; cross
VPERMQ        | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F3A.W1 00 /r ib
@ 2C VPERMPD; cross
VPERMPD       | W:ymm1, ymm2/m256, imm8             | RMI  | VEX.256.66.0F3A.W1 01 /r ib
@ 2C VPERMD/VPERMW; cross
VPERMD        | W:ymm1, ymm2, ymm3/m256             | RVM  | VEX.256.66.0F38.W0 36 /r
@ 2A INSERTPS; shuf
VINSERTPS     | W:xmm1, xmm2, xmm3/m32, imm8        | RVMI | VEX.128.66.0F3A.WIG 21 /r ib
@ 2B PINSRB/PINSRD/PINSRQ; shuf
VPINSRB       | W:xmm1, xmm2, r32/m8, imm8          | RVMI | VEX.128.66.0F3A.W0 20 /r ib
VPINSRD       | W:xmm1, xmm2, r/m32, imm8           | RVMI | VEX.128.66.0F3A.W0 22 /r ib
VPINSRQ       | W:xmm1, xmm2, r/m64, imm8           | RVMI | VEX.128.66.0F3A.W1 22 /r ib
@ 2B PINSRW; shuf
VPINSRW       | W:xmm1, xmm2, r32/m16, imm8         | RVMI | VEX.128.66.0F.W0 C4 /r ib
@ 2B PEXTRB/PEXTRD/PEXTRQ; xfer
VPEXTRB       | W:r32/m8, xmm2, imm8                | MRI  | VEX.128.66.0F3A.W0 14 /r ib
VPEXTRD       | W:r/m32, xmm2, imm8                 | MRI  | VEX.128.66.0F3A.W0 16 /r ib
VPEXTRQ       | W:r/m64, xmm2, imm8                 | MRI  | VEX.128.66.0F3A.W1 16 /r ib
@ 2B PEXTRW; xfer
VPEXTRW       | W:r32, xmm1, imm8                   | RMI  | VEX.128.66.0F.W0 C5 /r ib
VPEXTRW       | W:r32/m16, xmm2, imm8               | MRI  | VEX.128.66.0F3A.W0 15 /r ib
@ 2A EXTRACTPS; xfer
VEXTRACTPS    | W:r/m32, xmm1, imm8                 | MRI  | VEX.128.66.0F3A.W0 17 /r ib
@ 2C VEXTRACTF128; cross
VEXTRACTF128  | W:xmm1/m128, ymm2, imm8             | MRI  | VEX.256.66.0F3A.W0 19 /r ib
@ 2C VEXTRACTI128; cross
VEXTRACTI128  | W:xmm1/m128, ymm2, imm8             | MRI  | VEX.256.66.0F3A.W0 39 /r ib
@ 2C VINSERTF128; cross
VINSERTF128   | W:ymm1, ymm2, xmm3/m128, imm8       | RVMI | VEX.256.66.0F3A.W0 18 /r ib
@ 2C VINSERTI128; cross
VINSERTI128   | W:ymm1, ymm2, xmm3/m128, imm8       | RVMI | VEX.256.66.0F3A.W0 38 /r ib
@ 2C VMASKMOV; load
VMASKMOVPS    | W:xmm1, xmm2, m128                  | RVM  | VEX.128.66.0F38.W0 2C /r
VMASKMOVPS    | W:ymm1, ymm2, m256                  | RVM  | VEX.256.66.0F38.W0 2C /r
VMASKMOVPS    | W:m128, xmm1, xmm2                  | MVR  | VEX.128.66.0F38.W0 2E /r
VMASKMOVPS    | W:m256, ymm1, ymm2                  | MVR  | VEX.256.66.0F38.W0 2E /r
VMASKMOVPD    | W:xmm1, xmm2, m128                  | RVM  | VEX.128.66.0F38.W0 2D /r
VMASKMOVPD    | W:ymm1, ymm2, m256                  | RVM  | VEX.256.66.0F38.W0 2D /r
VMASKMOVPD    | W:m128, xmm1, xmm2                  | MVR  | VEX.128.66.0F38.W0 2F /r
VMASKMOVPD    | W:m256, ymm1, ymm2                  | MVR  | VEX.256.66.0F38.W0 2F /r
@ 2C VPMASKMOV; load
VPMASKMOVD    | W:xmm1, xmm2, m128                  | RVM  | VEX.128.66.0F38.W0 8C /r
VPMASKMOVD    | W:ymm1, ymm2, m256                  | RVM  | VEX.256.66.0F38.W0 8C /r
VPMASKMOVD    | W:m128, xmm1, xmm2                  | MVR  | VEX.128.66.0F38.W0 8E /r
VPMASKMOVD    | W:m256, ymm1, ymm2                  | MVR  | VEX.256.66.0F38.W0 8E /r
VPMASKMOVQ    | W:xmm1, xmm2, m128                  | RVM  | VEX.128.66.0F38.W1 8C /r
VPMASKMOVQ    | W:ymm1, ymm2, m256                  | RVM  | VEX.256.66.0F38.W1 8C /r
VPMASKMOVQ    | W:m128, xmm1, xmm2                  | MVR  | VEX.128.66.0F38.W1 8E /r
VPMASKMOVQ    | W:m256, ymm1, ymm2                  | MVR  | VEX.256.66.0F38.W1 8E /r
@ 2C VGATHERDPS/VGATHERQPS; gather
VGATHERDPS    | X:xmm1, vm32x, X:xmm2               | RMV  | VEX.128.66.0F38.W0 92 /r
VGATHERDPS    | X:ymm1, vm32y, X:ymm2               | RMV  | VEX.256.66.0F38.W0 92 /r
VGATHERQPS    | X:xmm1, vm64x, X:xmm2               | RMV  | VEX.128.66.0F38.W0 93 /r
VGATHERQPS    | X:xmm1, vm64y, X:xmm2               | RMV  | VEX.256.66.0F38.W0 93 /r
@ 2C VGATHERDPD/VGATHERQPD; gather
VGATHERDPD    | X:xmm1, vm32x, X:xmm2               | RMV  | VEX.128.66.0F38.W1 92 /r
VGATHERDPD    | X:ymm1, vm32x, X:ymm2               | RMV  | VEX.256.66.0F38.W1 92 /r
VGATHERQPD    | X:xmm1, vm64x, X:xmm2               | RMV  | VEX.128.66.0F38.W1 93 /r
VGATHERQPD    | X:ymm1, vm64y, X:ymm2               | RMV  | VEX.256.66.0F38.W1 93 /r
@ 2C VPGATHERDD/VPGATHERQD; gather
VPGATHERDD    | X:xmm1, vm32x, X:xmm2               | RMV  | VEX.128.66.0F38.W0 90 /r
VPGATHERDD    | X:ymm1, vm32y, X:ymm2               | RMV  | VEX.256.66.0F38.W0 90 /r
VPGATHERQD    | X:xmm1, vm64x, X:xmm2               | RMV  | VEX.128.66.0F38.W0 91 /r
VPGATHERQD    | X:xmm1, vm64y, X:xmm2               | RMV  | VEX.256.66.0F38.W0 91 /r
@ 2C VPGATHERDQ/VPGATHERQQ; gather
VPGATHERDQ    | X:xmm1, vm32x, X:xmm2               | RMV  | VEX.128.66.0F38.W1 90 /r
VPGATHERDQ    | X:ymm1, vm32x, X:ymm2               | RMV  | VEX.256.66.0F38.W1 90 /r
VPGATHERQQ    | X:xmm1, vm64x, X:xmm2               | RMV  | VEX.128.66.0F38.W1 91 /r
VPGATHERQQ    | X:ymm1, vm64y, X:ymm2               | RMV  | VEX.256.66.0F38.W1 91 /r
@ 2C VZEROUPPER; alu
VZEROUPPER    |                                     | ZO   | VEX.128.0F.WIG 77
"""
