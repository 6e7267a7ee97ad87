"""Vector instructions, part 9 (EVEX): half precision arithmetic (AVX512-FP16).

``forms`` says how lines are read.
"""
TABLE = """
@ 2C VADDPH; fp; feature=avx512_fp16
VADDPH        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.MAP5.W0 58 /r         | FV
VADDPH        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.MAP5.W0 58 /r         | FV
VADDPH        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.MAP5.W0 58 /r         | FV
@ 2C VADDSH; fp; feature=avx512_fp16
VADDSH        | W:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.F3.MAP5.W0 58 /r      | T1S
@ 2C VSUBPH; fp; feature=avx512_fp16
VSUBPH        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.MAP5.W0 5C /r         | FV
VSUBPH        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.MAP5.W0 5C /r         | FV
VSUBPH        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.MAP5.W0 5C /r         | FV
@ 2C VSUBSH; fp; feature=avx512_fp16
VSUBSH        | W:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.F3.MAP5.W0 5C /r      | T1S
@ 2C VMULPH; fp; feature=avx512_fp16
VMULPH        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.MAP5.W0 59 /r         | FV
VMULPH        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.MAP5.W0 59 /r         | FV
VMULPH        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.MAP5.W0 59 /r         | FV
@ 2C VMULSH; fp; feature=avx512_fp16
VMULSH        | W:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.F3.MAP5.W0 59 /r      | T1S
@ 2C VDIVPH; fdiv; feature=avx512_fp16
VDIVPH        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.MAP5.W0 5E /r         | FV
VDIVPH        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.MAP5.W0 5E /r         | FV
VDIVPH        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.MAP5.W0 5E /r         | FV
@ 2C VDIVSH; fdiv; feature=avx512_fp16
VDIVSH        | W:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.F3.MAP5.W0 5E /r      | T1S
@ 2C VMINPH; fp; feature=avx512_fp16
VMINPH        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.MAP5.W0 5D /r         | FV
VMINPH        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.MAP5.W0 5D /r         | FV
VMINPH        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{sae}  | RVM  | EVEX.512.MAP5.W0 5D /r         | FV
@ 2C VMINSH; fp; feature=avx512_fp16
VMINSH        | W:xmm1{k1}{z}, xmm2, xmm3/m16{sae}           | RVM  | EVEX.LIG.F3.MAP5.W0 5D /r      | T1S
@ 2C VMAXPH; fp; feature=avx512_fp16
VMAXPH        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.MAP5.W0 5F /r         | FV
VMAXPH        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.MAP5.W0 5F /r         | FV
VMAXPH        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{sae}  | RVM  | EVEX.512.MAP5.W0 5F /r         | FV
@ 2C VMAXSH; fp; feature=avx512_fp16
VMAXSH        | W:xmm1{k1}{z}, xmm2, xmm3/m16{sae}           | RVM  | EVEX.LIG.F3.MAP5.W0 5F /r      | T1S
@ 2C VSQRTPH; fdiv; feature=avx512_fp16
VSQRTPH       | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.MAP5.W0 51 /r         | FV
VSQRTPH       | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.MAP5.W0 51 /r         | FV
VSQRTPH       | W:zmm1{k1}{z}, zmm2/m512/m16bcst{er}         | RM   | EVEX.512.MAP5.W0 51 /r         | FV
@ 2C VSQRTSH; fdiv; feature=avx512_fp16
VSQRTSH       | W:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.F3.MAP5.W0 51 /r      | T1S
@ 2C VFMADD132PH/VFMADD213PH/VFMADD231PH; fma; feature=avx512_fp16
VFMADD132PH   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 98 /r      | FV
VFMADD132PH   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 98 /r      | FV
VFMADD132PH   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 98 /r      | FV
VFMADD213PH   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 A8 /r      | FV
VFMADD213PH   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 A8 /r      | FV
VFMADD213PH   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 A8 /r      | FV
VFMADD231PH   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 B8 /r      | FV
VFMADD231PH   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 B8 /r      | FV
VFMADD231PH   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 B8 /r      | FV
@ 2C VFMADD132SH/VFMADD213SH/VFMADD231SH; fma; feature=avx512_fp16
VFMADD132SH   | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 99 /r      | T1S
VFMADD213SH   | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 A9 /r      | T1S
VFMADD231SH   | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 B9 /r      | T1S
@ 2C VFMSUB132PH/VFMSUB213PH/VFMSUB231PH; fma; feature=avx512_fp16
VFMSUB132PH   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 9A /r      | FV
VFMSUB132PH   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 9A /r      | FV
VFMSUB132PH   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 9A /r      | FV
VFMSUB213PH   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 AA /r      | FV
VFMSUB213PH   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 AA /r      | FV
VFMSUB213PH   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 AA /r      | FV
VFMSUB231PH   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 BA /r      | FV
VFMSUB231PH   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 BA /r      | FV
VFMSUB231PH   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 BA /r      | FV
@ 2C VFMSUB132SH/VFMSUB213SH/VFMSUB231SH; fma; feature=avx512_fp16
VFMSUB132SH   | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 9B /r      | T1S
VFMSUB213SH   | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 AB /r      | T1S
VFMSUB231SH   | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 BB /r      | T1S
@ 2C VFNMADD132PH/VFNMADD213PH/VFNMADD231PH; fma; feature=avx512_fp16
VFNMADD132PH  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 9C /r      | FV
VFNMADD132PH  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 9C /r      | FV
VFNMADD132PH  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 9C /r      | FV
VFNMADD213PH  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 AC /r      | FV
VFNMADD213PH  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 AC /r      | FV
VFNMADD213PH  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 AC /r      | FV
VFNMADD231PH  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 BC /r      | FV
VFNMADD231PH  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 BC /r      | FV
VFNMADD231PH  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 BC /r      | FV
@ 2C VFNMADD132SH/VFNMADD213SH/VFNMADD231SH; fma; feature=avx512_fp16
VFNMADD132SH  | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 9D /r      | T1S
VFNMADD213SH  | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 AD /r      | T1S
VFNMADD231SH  | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 BD /r      | T1S
@ 2C VFNMSUB132PH/VFNMSUB213PH/VFNMSUB231PH; fma; feature=avx512_fp16
VFNMSUB132PH  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 9E /r      | FV
VFNMSUB132PH  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 9E /r      | FV
VFNMSUB132PH  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 9E /r      | FV
VFNMSUB213PH  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 AE /r      | FV
VFNMSUB213PH  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 AE /r      | FV
VFNMSUB213PH  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 AE /r      | FV
VFNMSUB231PH  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m16bcst       | RVM  | EVEX.128.66.MAP6.W0 BE /r      | FV
VFNMSUB231PH  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m16bcst       | RVM  | EVEX.256.66.MAP6.W0 BE /r      | FV
VFNMSUB231PH  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m16bcst{er}   | RVM  | EVEX.512.66.MAP6.W0 BE /r      | FV
@ 2C VFNMSUB132SH/VFNMSUB213SH/VFNMSUB231SH; fma; feature=avx512_fp16
VFNMSUB132SH  | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 9F /r      | T1S
VFNMSUB213SH  | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 AF /r      | T1S
VFNMSUB231SH  | X:xmm1{k1}{z}, xmm2, xmm3/m16{er}            | RVM  | EVEX.LIG.66.MAP6.W0 BF /r      | T1S
@ 2C VCMPPH; fp; feature=avx512_fp16
VCMPPH        | W:k1{k2}, xmm2, xmm3/m128/m16bcst, imm8      | RVMI | EVEX.128.0F3A.W0 C2 /r ib      | FV
VCMPPH        | W:k1{k2}, ymm2, ymm3/m256/m16bcst, imm8      | RVMI | EVEX.256.0F3A.W0 C2 /r ib      | FV
VCMPPH        | W:k1{k2}, zmm2, zmm3/m512/m16bcst{sae}, imm8 | RVMI | EVEX.512.0F3A.W0 C2 /r ib      | FV
@ 2C VCMPSH; fp; feature=avx512_fp16
VCMPSH        | W:k1{k2}, xmm2, xmm3/m16{sae}, imm8          | RVMI | EVEX.LIG.F3.0F3A.W0 C2 /r ib   | T1S
@ 2C VFPCLASSPH; fp; feature=avx512_fp16
VFPCLASSPH    | W:k1{k2}, xmm2/m128/m16bcst, imm8            | RMI  | EVEX.128.0F3A.W0 66 /r ib      | FV
VFPCLASSPH    | W:k1{k2}, ymm2/m256/m16bcst, imm8            | RMI  | EVEX.256.0F3A.W0 66 /r ib      | FV
VFPCLASSPH    | W:k1{k2}, zmm2/m512/m16bcst, imm8            | RMI  | EVEX.512.0F3A.W0 66 /r ib      | FV
@ 2C VRNDSCALEPH; round; feature=avx512_fp16
VRNDSCALEPH   | W:xmm1{k1}{z}, xmm2/m128/m16bcst, imm8       | RMI  | EVEX.128.0F3A.W0 08 /r ib      | FV
VRNDSCALEPH   | W:ymm1{k1}{z}, ymm2/m256/m16bcst, imm8       | RMI  | EVEX.256.0F3A.W0 08 /r ib      | FV
VRNDSCALEPH   | W:zmm1{k1}{z}, zmm2/m512/m16bcst{sae}, imm8  | RMI  | EVEX.512.0F3A.W0 08 /r ib      | FV
@ 2C VRNDSCALESH; round; feature=avx512_fp16
VRNDSCALESH   | W:xmm1{k1}{z}, xmm2, xmm3/m16{sae}, imm8     | RVMI | EVEX.LIG.0F3A.W0 0A /r ib      | T1S
@ 2C VMOVSH; mov; feature=avx512_fp16
VMOVSH        | W:xmm1{k1}{z}, m16                           | RM   | EVEX.LIG.F3.MAP5.W0 10 /r      | T1S
VMOVSH        | W:m16{k1}, xmm1                              | MR   | EVEX.LIG.F3.MAP5.W0 11 /r      | T1S
VMOVSH        | W:xmm1{k1}{z}, xmm2, xmm3                    | RVM  | EVEX.LIG.F3.MAP5.W0 10 /r
@ 2C VMOVW; xfer; feature=avx512_fp16
VMOVW         | W:xmm1, r32/m16                              | RM   | EVEX.128.66.MAP5.W0 6E /r      | T1S
VMOVW         | W:r32/m16, xmm1                              | MR   | EVEX.128.66.MAP5.W0 7E /r      | T1S
@ 2C VCVTDQ2PH; cvt; feature=avx512_fp16
VCVTDQ2PH     | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.MAP5.W0 5B /r         | FV
VCVTDQ2PH     | W:xmm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.MAP5.W0 5B /r         | FV
VCVTDQ2PH     | W:ymm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.MAP5.W0 5B /r         | FV
@ 2C VCVTUDQ2PH; cvt; feature=avx512_fp16
VCVTUDQ2PH    | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.F2.MAP5.W0 7A /r      | FV
VCVTUDQ2PH    | W:xmm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.F2.MAP5.W0 7A /r      | FV
VCVTUDQ2PH    | W:ymm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.F2.MAP5.W0 7A /r      | FV
@ 2C VCVTQQ2PH; cvt; feature=avx512_fp16
VCVTQQ2PH     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.MAP5.W1 5B /r         | FV
VCVTQQ2PH     | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.MAP5.W1 5B /r         | FV
VCVTQQ2PH     | W:xmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.MAP5.W1 5B /r         | FV
@ 2C VCVTUQQ2PH; cvt; feature=avx512_fp16
VCVTUQQ2PH    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.F2.MAP5.W1 7A /r      | FV
VCVTUQQ2PH    | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.F2.MAP5.W1 7A /r      | FV
VCVTUQQ2PH    | W:xmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.F2.MAP5.W1 7A /r      | FV
@ 2C VCVTW2PH; cvt; feature=avx512_fp16
VCVTW2PH      | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.F3.MAP5.W0 7D /r      | FV
VCVTW2PH      | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.F3.MAP5.W0 7D /r      | FV
VCVTW2PH      | W:zmm1{k1}{z}, zmm2/m512/m16bcst{er}         | RM   | EVEX.512.F3.MAP5.W0 7D /r      | FV
@ 2C VCVTUW2PH; cvt; feature=avx512_fp16
VCVTUW2PH     | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.F2.MAP5.W0 7D /r      | FV
VCVTUW2PH     | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.F2.MAP5.W0 7D /r      | FV
VCVTUW2PH     | W:zmm1{k1}{z}, zmm2/m512/m16bcst{er}         | RM   | EVEX.512.F2.MAP5.W0 7D /r      | FV
@ 2C VCVTPD2PH; cvt; feature=avx512_fp16
VCVTPD2PH     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.MAP5.W1 5A /r      | FV
VCVTPD2PH     | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.MAP5.W1 5A /r      | FV
VCVTPD2PH     | W:xmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.66.MAP5.W1 5A /r      | FV
@ 2C VCVTPS2PHX; cvt; feature=avx512_fp16
VCVTPS2PHX    | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.MAP5.W0 1D /r      | FV
VCVTPS2PHX    | W:xmm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.MAP5.W0 1D /r      | FV
VCVTPS2PHX    | W:ymm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.66.MAP5.W0 1D /r      | FV
@ 2C VCVTPH2PD; cvt; feature=avx512_fp16
VCVTPH2PD     | W:xmm1{k1}{z}, xmm2/m32/m16bcst              | RM   | EVEX.128.MAP5.W0 5A /r         | QV
VCVTPH2PD     | W:ymm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.256.MAP5.W0 5A /r         | QV
VCVTPH2PD     | W:zmm1{k1}{z}, xmm2/m128/m16bcst{sae}        | RM   | EVEX.512.MAP5.W0 5A /r         | QV
@ 2C VCVTPH2PSX; cvt; feature=avx512_fp16
VCVTPH2PSX    | W:xmm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.128.66.MAP6.W0 13 /r      | HV
VCVTPH2PSX    | W:ymm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.256.66.MAP6.W0 13 /r      | HV
VCVTPH2PSX    | W:zmm1{k1}{z}, ymm2/m256/m16bcst{sae}        | RM   | EVEX.512.66.MAP6.W0 13 /r      | HV
@ 2C VCVTPH2DQ; cvt; feature=avx512_fp16
VCVTPH2DQ     | W:xmm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.128.66.MAP5.W0 5B /r      | HV
VCVTPH2DQ     | W:ymm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.256.66.MAP5.W0 5B /r      | HV
VCVTPH2DQ     | W:zmm1{k1}{z}, ymm2/m256/m16bcst{er}         | RM   | EVEX.512.66.MAP5.W0 5B /r      | HV
@ 2C VCVTTPH2DQ; cvt; feature=avx512_fp16
VCVTTPH2DQ    | W:xmm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.128.F3.MAP5.W0 5B /r      | HV
VCVTTPH2DQ    | W:ymm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.256.F3.MAP5.W0 5B /r      | HV
VCVTTPH2DQ    | W:zmm1{k1}{z}, ymm2/m256/m16bcst{sae}        | RM   | EVEX.512.F3.MAP5.W0 5B /r      | HV
@ 2C VCVTPH2UDQ; cvt; feature=avx512_fp16
VCVTPH2UDQ    | W:xmm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.128.MAP5.W0 79 /r         | HV
VCVTPH2UDQ    | W:ymm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.256.MAP5.W0 79 /r         | HV
VCVTPH2UDQ    | W:zmm1{k1}{z}, ymm2/m256/m16bcst{er}         | RM   | EVEX.512.MAP5.W0 79 /r         | HV
@ 2C VCVTTPH2UDQ; cvt; feature=avx512_fp16
VCVTTPH2UDQ   | W:xmm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.128.MAP5.W0 78 /r         | HV
VCVTTPH2UDQ   | W:ymm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.256.MAP5.W0 78 /r         | HV
VCVTTPH2UDQ   | W:zmm1{k1}{z}, ymm2/m256/m16bcst{sae}        | RM   | EVEX.512.MAP5.W0 78 /r         | HV
@ 2C VCVTPH2QQ; cvt; feature=avx512_fp16
VCVTPH2QQ     | W:xmm1{k1}{z}, xmm2/m32/m16bcst              | RM   | EVEX.128.66.MAP5.W0 7B /r      | QV
VCVTPH2QQ     | W:ymm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.256.66.MAP5.W0 7B /r      | QV
VCVTPH2QQ     | W:zmm1{k1}{z}, xmm2/m128/m16bcst{er}         | RM   | EVEX.512.66.MAP5.W0 7B /r      | QV
@ 2C VCVTTPH2QQ; cvt; feature=avx512_fp16
VCVTTPH2QQ    | W:xmm1{k1}{z}, xmm2/m32/m16bcst              | RM   | EVEX.128.66.MAP5.W0 7A /r      | QV
VCVTTPH2QQ    | W:ymm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.256.66.MAP5.W0 7A /r      | QV
VCVTTPH2QQ    | W:zmm1{k1}{z}, xmm2/m128/m16bcst{sae}        | RM   | EVEX.512.66.MAP5.W0 7A /r      | QV
@ 2C VCVTPH2UQQ; cvt; feature=avx512_fp16
VCVTPH2UQQ    | W:xmm1{k1}{z}, xmm2/m32/m16bcst              | RM   | EVEX.128.66.MAP5.W0 79 /r      | QV
VCVTPH2UQQ    | W:ymm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.256.66.MAP5.W0 79 /r      | QV
VCVTPH2UQQ    | W:zmm1{k1}{z}, xmm2/m128/m16bcst{er}         | RM   | EVEX.512.66.MAP5.W0 79 /r      | QV
@ 2C VCVTTPH2UQQ; cvt; feature=avx512_fp16
VCVTTPH2UQQ   | W:xmm1{k1}{z}, xmm2/m32/m16bcst              | RM   | EVEX.128.66.MAP5.W0 78 /r      | QV
VCVTTPH2UQQ   | W:ymm1{k1}{z}, xmm2/m64/m16bcst              | RM   | EVEX.256.66.MAP5.W0 78 /r      | QV
VCVTTPH2UQQ   | W:zmm1{k1}{z}, xmm2/m128/m16bcst{sae}        | RM   | EVEX.512.66.MAP5.W0 78 /r      | QV
@ 2C VCVTPH2W; cvt; feature=avx512_fp16
VCVTPH2W      | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.66.MAP5.W0 7D /r      | FV
VCVTPH2W      | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.66.MAP5.W0 7D /r      | FV
VCVTPH2W      | W:zmm1{k1}{z}, zmm2/m512/m16bcst{er}         | RM   | EVEX.512.66.MAP5.W0 7D /r      | FV
@ 2C VCVTTPH2W; cvt; feature=avx512_fp16
VCVTTPH2W     | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.66.MAP5.W0 7C /r      | FV
VCVTTPH2W     | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.66.MAP5.W0 7C /r      | FV
VCVTTPH2W     | W:zmm1{k1}{z}, zmm2/m512/m16bcst{sae}        | RM   | EVEX.512.66.MAP5.W0 7C /r      | FV
@ 2C VCVTPH2UW; cvt; feature=avx512_fp16
VCVTPH2UW     | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.MAP5.W0 7D /r         | FV
VCVTPH2UW     | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.MAP5.W0 7D /r         | FV
VCVTPH2UW     | W:zmm1{k1}{z}, zmm2/m512/m16bcst{er}         | RM   | EVEX.512.MAP5.W0 7D /r         | FV
@ 2C VCVTTPH2UW; cvt; feature=avx512_fp16
VCVTTPH2UW    | W:xmm1{k1}{z}, xmm2/m128/m16bcst             | RM   | EVEX.128.MAP5.W0 7C /r         | FV
VCVTTPH2UW    | W:ymm1{k1}{z}, ymm2/m256/m16bcst             | RM   | EVEX.256.MAP5.W0 7C /r         | FV
VCVTTPH2UW    | W:zmm1{k1}{z}, zmm2/m512/m16bcst{sae}        | RM   | EVEX.512.MAP5.W0 7C /r         | FV
@ 2C VCVTSD2SH; cvt; feature=avx512_fp16
VCVTSD2SH     | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.MAP5.W1 5A /r      | T1S
@ 2C VCVTSS2SH; cvt; feature=avx512_fp16
VCVTSS2SH     | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.MAP5.W0 1D /r         | T1S
@ 2C VCVTSH2SD; cvt; feature=avx512_fp16
VCVTSH2SD     | W:xmm1{k1}{z}, xmm2, xmm3/m16{sae}           | RVM  | EVEX.LIG.F3.MAP5.W0 5A /r      | T1S
@ 2C VCVTSH2SS; cvt; feature=avx512_fp16
VCVTSH2SS     | W:xmm1{k1}{z}, xmm2, xmm3/m16{sae}           | RVM  | EVEX.LIG.MAP6.W0 13 /r         | T1S
@ 2C VCVTSI2SH; cvt; feature=avx512_fp16
VCVTSI2SH     | W:xmm1, xmm2, r/m32{er}                      | RVM  | EVEX.LIG.F3.MAP5.W0 2A /r      | T1S
VCVTSI2SH     | W:xmm1, xmm2, r/m64{er}                      | RVM  | EVEX.LIG.F3.MAP5.W1 2A /r      | T1S
@ 2C VCVTUSI2SH; cvt; feature=avx512_fp16
VCVTUSI2SH    | W:xmm1, xmm2, r/m32{er}                      | RVM  | EVEX.LIG.F3.MAP5.W0 7B /r      | T1S
VCVTUSI2SH    | W:xmm1, xmm2, r/m64{er}                      | RVM  | EVEX.LIG.F3.MAP5.W1 7B /r      | T1S
@ 2C VCVTSH2SI; cvt; feature=avx512_fp16
VCVTSH2SI     | W:r32, xmm1/m16{er}                          | RM   | EVEX.LIG.F3.MAP5.W0 2D /r      | T1S
VCVTSH2SI     | W:r64, xmm1/m16{er}                          | RM   | EVEX.LIG.F3.MAP5.W1 2D /r      | T1S
@ 2C VCVTTSH2SI; cvt; feature=avx512_fp16
VCVTTSH2SI    | W:r32, xmm1/m16{sae}                         | RM   | EVEX.LIG.F3.MAP5.W0 2C /r      | T1S
VCVTTSH2SI    | W:r64, xmm1/m16{sae}                         | RM   | EVEX.LIG.F3.MAP5.W1 2C /r      | T1S
@ 2C VCVTSH2USI; cvt; feature=avx512_fp16
VCVTSH2USI    | W:r32, xmm1/m16{er}                          | RM   | EVEX.LIG.F3.MAP5.W0 79 /r      | T1S
VCVTSH2USI    | W:r64, xmm1/m16{er}                          | RM   | EVEX.LIG.F3.MAP5.W1 79 /r      | T1S
@ 2C VCVTTSH2USI; cvt; feature=avx512_fp16
VCVTTSH2USI   | W:r32, xmm1/m16{sae}                         | RM   | EVEX.LIG.F3.MAP5.W0 78 /r      | T1S
VCVTTSH2USI   | W:r64, xmm1/m16{sae}                         | RM   | EVEX.LIG.F3.MAP5.W1 78 /r      | T1S
"""
