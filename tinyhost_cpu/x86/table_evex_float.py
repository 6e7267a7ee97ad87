"""Vector instructions, part 4 (EVEX): floating point (AVX-512).

``forms`` says how lines are read.
"""
TABLE = """
@ 2A ADDPS; fp; feature=avx512f
VADDPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 58 /r           | FV
VADDPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 58 /r           | FV
VADDPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.0F.W0 58 /r           | FV
@ 2A ADDPD; fp; feature=avx512f
VADDPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 58 /r        | FV
VADDPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 58 /r        | FV
VADDPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F.W1 58 /r        | FV
@ 2A ADDSS; fp; feature=avx512f
VADDSS        | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.F3.0F.W0 58 /r        | T1S
@ 2A ADDSD; fp; feature=avx512f
VADDSD        | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.0F.W1 58 /r        | T1S
@ 2B SUBPS; fp; feature=avx512f
VSUBPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 5C /r           | FV
VSUBPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 5C /r           | FV
VSUBPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.0F.W0 5C /r           | FV
@ 2B SUBPD; fp; feature=avx512f
VSUBPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 5C /r        | FV
VSUBPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 5C /r        | FV
VSUBPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F.W1 5C /r        | FV
@ 2B SUBSS; fp; feature=avx512f
VSUBSS        | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.F3.0F.W0 5C /r        | T1S
@ 2B SUBSD; fp; feature=avx512f
VSUBSD        | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.0F.W1 5C /r        | T1S
@ 2B MULPS; fp; feature=avx512f
VMULPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 59 /r           | FV
VMULPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 59 /r           | FV
VMULPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.0F.W0 59 /r           | FV
@ 2B MULPD; fp; feature=avx512f
VMULPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 59 /r        | FV
VMULPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 59 /r        | FV
VMULPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F.W1 59 /r        | FV
@ 2B MULSS; fp; feature=avx512f
VMULSS        | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.F3.0F.W0 59 /r        | T1S
@ 2B MULSD; fp; feature=avx512f
VMULSD        | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.0F.W1 59 /r        | T1S
@ 2A DIVPS; fdiv; feature=avx512f
VDIVPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 5E /r           | FV
VDIVPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 5E /r           | FV
VDIVPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.0F.W0 5E /r           | FV
@ 2A DIVPD; fdiv; feature=avx512f
VDIVPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 5E /r        | FV
VDIVPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 5E /r        | FV
VDIVPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F.W1 5E /r        | FV
@ 2A DIVSS; fdiv; feature=avx512f
VDIVSS        | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.F3.0F.W0 5E /r        | T1S
@ 2A DIVSD; fdiv; feature=avx512f
VDIVSD        | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.0F.W1 5E /r        | T1S
@ 2B MINPS; fp; feature=avx512f
VMINPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 5D /r           | FV
VMINPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 5D /r           | FV
VMINPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{sae}  | RVM  | EVEX.512.0F.W0 5D /r           | FV
@ 2B MINPD; fp; feature=avx512f
VMINPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 5D /r        | FV
VMINPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 5D /r        | FV
VMINPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{sae}  | RVM  | EVEX.512.66.0F.W1 5D /r        | FV
@ 2B MINSS; fp; feature=avx512f
VMINSS        | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}           | RVM  | EVEX.LIG.F3.0F.W0 5D /r        | T1S
@ 2B MINSD; fp; feature=avx512f
VMINSD        | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}           | RVM  | EVEX.LIG.F2.0F.W1 5D /r        | T1S
@ 2B MAXPS; fp; feature=avx512f
VMAXPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 5F /r           | FV
VMAXPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 5F /r           | FV
VMAXPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{sae}  | RVM  | EVEX.512.0F.W0 5F /r           | FV
@ 2B MAXPD; fp; feature=avx512f
VMAXPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 5F /r        | FV
VMAXPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 5F /r        | FV
VMAXPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{sae}  | RVM  | EVEX.512.66.0F.W1 5F /r        | FV
@ 2B MAXSS; fp; feature=avx512f
VMAXSS        | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}           | RVM  | EVEX.LIG.F3.0F.W0 5F /r        | T1S
@ 2B MAXSD; fp; feature=avx512f
VMAXSD        | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}           | RVM  | EVEX.LIG.F2.0F.W1 5F /r        | T1S
@ 2B SQRTPS; fdiv; feature=avx512f
VSQRTPS       | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.0F.W0 51 /r           | FV
VSQRTPS       | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.0F.W0 51 /r           | FV
VSQRTPS       | W:zmm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.0F.W0 51 /r           | FV
@ 2B SQRTPD; fdiv; feature=avx512f
VSQRTPD       | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 51 /r        | FV
VSQRTPD       | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 51 /r        | FV
VSQRTPD       | W:zmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.66.0F.W1 51 /r        | FV
@ 2B SQRTSS; fdiv; feature=avx512f
VSQRTSS       | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.F3.0F.W0 51 /r        | T1S
@ 2B SQRTSD; fdiv; feature=avx512f
VSQRTSD       | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.0F.W1 51 /r        | T1S
@ 2A ANDPS; alu; feature=avx512dq
VANDPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 54 /r           | FV
VANDPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 54 /r           | FV
VANDPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.0F.W0 54 /r           | FV
@ 2A ANDPD; alu; feature=avx512dq
VANDPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 54 /r        | FV
VANDPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 54 /r        | FV
VANDPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 54 /r        | FV
@ 2A ANDNPS; alu; feature=avx512dq
VANDNPS       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 55 /r           | FV
VANDNPS       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 55 /r           | FV
VANDNPS       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.0F.W0 55 /r           | FV
@ 2A ANDNPD; alu; feature=avx512dq
VANDNPD       | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 55 /r        | FV
VANDNPD       | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 55 /r        | FV
VANDNPD       | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 55 /r        | FV
@ 2B ORPS; alu; feature=avx512dq
VORPS         | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 56 /r           | FV
VORPS         | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 56 /r           | FV
VORPS         | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.0F.W0 56 /r           | FV
@ 2B ORPD; alu; feature=avx512dq
VORPD         | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 56 /r        | FV
VORPD         | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 56 /r        | FV
VORPD         | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 56 /r        | FV
@ 2B XORPS; alu; feature=avx512dq
VXORPS        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.0F.W0 57 /r           | FV
VXORPS        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.0F.W0 57 /r           | FV
VXORPS        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst       | RVM  | EVEX.512.0F.W0 57 /r           | FV
@ 2B XORPD; alu; feature=avx512dq
VXORPD        | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F.W1 57 /r        | FV
VXORPD        | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F.W1 57 /r        | FV
VXORPD        | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst       | RVM  | EVEX.512.66.0F.W1 57 /r        | FV
@ 2C VFMADD132PS/VFMADD213PS/VFMADD231PS; fma; feature=avx512f
VFMADD132PS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 98 /r      | FV
VFMADD132PS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 98 /r      | FV
VFMADD132PS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 98 /r      | FV
VFMADD213PS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 A8 /r      | FV
VFMADD213PS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 A8 /r      | FV
VFMADD213PS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 A8 /r      | FV
VFMADD231PS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 B8 /r      | FV
VFMADD231PS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 B8 /r      | FV
VFMADD231PS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 B8 /r      | FV
@ 2C VFMADD132PD/VFMADD213PD/VFMADD231PD; fma; feature=avx512f
VFMADD132PD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 98 /r      | FV
VFMADD132PD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 98 /r      | FV
VFMADD132PD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 98 /r      | FV
VFMADD213PD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 A8 /r      | FV
VFMADD213PD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 A8 /r      | FV
VFMADD213PD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 A8 /r      | FV
VFMADD231PD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 B8 /r      | FV
VFMADD231PD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 B8 /r      | FV
VFMADD231PD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 B8 /r      | FV
@ 2C VFMADD132SS/VFMADD213SS/VFMADD231SS; fma; feature=avx512f
VFMADD132SS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 99 /r      | T1S
VFMADD213SS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 A9 /r      | T1S
VFMADD231SS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 B9 /r      | T1S
@ 2C VFMADD132SD/VFMADD213SD/VFMADD231SD; fma; feature=avx512f
VFMADD132SD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 99 /r      | T1S
VFMADD213SD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 A9 /r      | T1S
VFMADD231SD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 B9 /r      | T1S
@ 2C VFMSUB132PS/VFMSUB213PS/VFMSUB231PS; fma; feature=avx512f
VFMSUB132PS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 9A /r      | FV
VFMSUB132PS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 9A /r      | FV
VFMSUB132PS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 9A /r      | FV
VFMSUB213PS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 AA /r      | FV
VFMSUB213PS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 AA /r      | FV
VFMSUB213PS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 AA /r      | FV
VFMSUB231PS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 BA /r      | FV
VFMSUB231PS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 BA /r      | FV
VFMSUB231PS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 BA /r      | FV
@ 2C VFMSUB132PD/VFMSUB213PD/VFMSUB231PD; fma; feature=avx512f
VFMSUB132PD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 9A /r      | FV
VFMSUB132PD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 9A /r      | FV
VFMSUB132PD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 9A /r      | FV
VFMSUB213PD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 AA /r      | FV
VFMSUB213PD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 AA /r      | FV
VFMSUB213PD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 AA /r      | FV
VFMSUB231PD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 BA /r      | FV
VFMSUB231PD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 BA /r      | FV
VFMSUB231PD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 BA /r      | FV
@ 2C VFMSUB132SS/VFMSUB213SS/VFMSUB231SS; fma; feature=avx512f
VFMSUB132SS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 9B /r      | T1S
VFMSUB213SS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 AB /r      | T1S
VFMSUB231SS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 BB /r      | T1S
@ 2C VFMSUB132SD/VFMSUB213SD/VFMSUB231SD; fma; feature=avx512f
VFMSUB132SD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 9B /r      | T1S
VFMSUB213SD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 AB /r      | T1S
VFMSUB231SD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 BB /r      | T1S
@ 2C VFNMADD132PS/VFNMADD213PS/VFNMADD231PS; fma; feature=avx512f
VFNMADD132PS  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 9C /r      | FV
VFNMADD132PS  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 9C /r      | FV
VFNMADD132PS  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 9C /r      | FV
VFNMADD213PS  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 AC /r      | FV
VFNMADD213PS  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 AC /r      | FV
VFNMADD213PS  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 AC /r      | FV
VFNMADD231PS  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 BC /r      | FV
VFNMADD231PS  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 BC /r      | FV
VFNMADD231PS  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 BC /r      | FV
@ 2C VFNMADD132PD/VFNMADD213PD/VFNMADD231PD; fma; feature=avx512f
VFNMADD132PD  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 9C /r      | FV
VFNMADD132PD  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 9C /r      | FV
VFNMADD132PD  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 9C /r      | FV
VFNMADD213PD  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 AC /r      | FV
VFNMADD213PD  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 AC /r      | FV
VFNMADD213PD  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 AC /r      | FV
VFNMADD231PD  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 BC /r      | FV
VFNMADD231PD  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 BC /r      | FV
VFNMADD231PD  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 BC /r      | FV
@ 2C VFNMADD132SS/VFNMADD213SS/VFNMADD231SS; fma; feature=avx512f
VFNMADD132SS  | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 9D /r      | T1S
VFNMADD213SS  | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 AD /r      | T1S
VFNMADD231SS  | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 BD /r      | T1S
@ 2C VFNMADD132SD/VFNMADD213SD/VFNMADD231SD; fma; feature=avx512f
VFNMADD132SD  | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 9D /r      | T1S
VFNMADD213SD  | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 AD /r      | T1S
VFNMADD231SD  | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 BD /r      | T1S
@ 2C VFNMSUB132PS/VFNMSUB213PS/VFNMSUB231PS; fma; feature=avx512f
VFNMSUB132PS  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 9E /r      | FV
VFNMSUB132PS  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 9E /r      | FV
VFNMSUB132PS  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 9E /r      | FV
VFNMSUB213PS  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 AE /r      | FV
VFNMSUB213PS  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 AE /r      | FV
VFNMSUB213PS  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 AE /r      | FV
VFNMSUB231PS  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 BE /r      | FV
VFNMSUB231PS  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 BE /r      | FV
VFNMSUB231PS  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 BE /r      | FV
@ 2C VFNMSUB132PD/VFNMSUB213PD/VFNMSUB231PD; fma; feature=avx512f
VFNMSUB132PD  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 9E /r      | FV
VFNMSUB132PD  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 9E /r      | FV
VFNMSUB132PD  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 9E /r      | FV
VFNMSUB213PD  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 AE /r      | FV
VFNMSUB213PD  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 AE /r      | FV
VFNMSUB213PD  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 AE /r      | FV
VFNMSUB231PD  | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 BE /r      | FV
VFNMSUB231PD  | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 BE /r      | FV
VFNMSUB231PD  | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 BE /r      | FV
@ 2C VFNMSUB132SS/VFNMSUB213SS/VFNMSUB231SS; fma; feature=avx512f
VFNMSUB132SS  | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 9F /r      | T1S
VFNMSUB213SS  | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 AF /r      | T1S
VFNMSUB231SS  | X:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 BF /r      | T1S
@ 2C VFNMSUB132SD/VFNMSUB213SD/VFNMSUB231SD; fma; feature=avx512f
VFNMSUB132SD  | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 9F /r      | T1S
VFNMSUB213SD  | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 AF /r      | T1S
VFNMSUB231SD  | X:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 BF /r      | T1S
@ 2C VRNDSCALEPS; round; feature=avx512f
VRNDSCALEPS   | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | RMI  | EVEX.128.66.0F3A.W0 08 /r ib   | FV
VRNDSCALEPS   | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | RMI  | EVEX.256.66.0F3A.W0 08 /r ib   | FV
VRNDSCALEPS   | W:zmm1{k1}{z}, zmm2/m512/m32bcst{sae}, imm8  | RMI  | EVEX.512.66.0F3A.W0 08 /r ib   | FV
@ 2C VRNDSCALEPD; round; feature=avx512f
VRNDSCALEPD   | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | RMI  | EVEX.128.66.0F3A.W1 09 /r ib   | FV
VRNDSCALEPD   | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | RMI  | EVEX.256.66.0F3A.W1 09 /r ib   | FV
VRNDSCALEPD   | W:zmm1{k1}{z}, zmm2/m512/m64bcst{sae}, imm8  | RMI  | EVEX.512.66.0F3A.W1 09 /r ib   | FV
@ 2C VRNDSCALESS; round; feature=avx512f
VRNDSCALESS   | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W0 0A /r ib   | T1S
@ 2C VRNDSCALESD; round; feature=avx512f
VRNDSCALESD   | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W1 0B /r ib   | T1S
@ 2C VREDUCEPS; fp; feature=avx512dq
VREDUCEPS     | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | RMI  | EVEX.128.66.0F3A.W0 56 /r ib   | FV
VREDUCEPS     | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | RMI  | EVEX.256.66.0F3A.W0 56 /r ib   | FV
VREDUCEPS     | W:zmm1{k1}{z}, zmm2/m512/m32bcst{sae}, imm8  | RMI  | EVEX.512.66.0F3A.W0 56 /r ib   | FV
@ 2C VREDUCEPD; fp; feature=avx512dq
VREDUCEPD     | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | RMI  | EVEX.128.66.0F3A.W1 56 /r ib   | FV
VREDUCEPD     | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | RMI  | EVEX.256.66.0F3A.W1 56 /r ib   | FV
VREDUCEPD     | W:zmm1{k1}{z}, zmm2/m512/m64bcst{sae}, imm8  | RMI  | EVEX.512.66.0F3A.W1 56 /r ib   | FV
@ 2C VREDUCESS; fp; feature=avx512dq
VREDUCESS     | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W0 57 /r ib   | T1S
@ 2C VREDUCESD; fp; feature=avx512dq
VREDUCESD     | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W1 57 /r ib   | T1S
@ 2C VRANGEPS; fp; feature=avx512dq
VRANGEPS      | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst, imm8 | RVMI | EVEX.128.66.0F3A.W0 50 /r ib   | FV
VRANGEPS      | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.66.0F3A.W0 50 /r ib   | FV
VRANGEPS      | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{sae}, imm8 | RVMI | EVEX.512.66.0F3A.W0 50 /r ib | FV
@ 2C VRANGEPD; fp; feature=avx512dq
VRANGEPD      | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst, imm8 | RVMI | EVEX.128.66.0F3A.W1 50 /r ib   | FV
VRANGEPD      | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F3A.W1 50 /r ib   | FV
VRANGEPD      | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{sae}, imm8 | RVMI | EVEX.512.66.0F3A.W1 50 /r ib | FV
@ 2C VRANGESS; fp; feature=avx512dq
VRANGESS      | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W0 51 /r ib   | T1S
@ 2C VRANGESD; fp; feature=avx512dq
VRANGESD      | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W1 51 /r ib   | T1S
@ 2C VSCALEFPS; fp; feature=avx512f
VSCALEFPS     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst       | RVM  | EVEX.128.66.0F38.W0 2C /r      | FV
VSCALEFPS     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst       | RVM  | EVEX.256.66.0F38.W0 2C /r      | FV
VSCALEFPS     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{er}   | RVM  | EVEX.512.66.0F38.W0 2C /r      | FV
@ 2C VSCALEFPD; fp; feature=avx512f
VSCALEFPD     | W:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst       | RVM  | EVEX.128.66.0F38.W1 2C /r      | FV
VSCALEFPD     | W:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst       | RVM  | EVEX.256.66.0F38.W1 2C /r      | FV
VSCALEFPD     | W:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{er}   | RVM  | EVEX.512.66.0F38.W1 2C /r      | FV
@ 2C VSCALEFSS; fp; feature=avx512f
VSCALEFSS     | W:xmm1{k1}{z}, xmm2, xmm3/m32{er}            | RVM  | EVEX.LIG.66.0F38.W0 2D /r      | T1S
@ 2C VSCALEFSD; fp; feature=avx512f
VSCALEFSD     | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.66.0F38.W1 2D /r      | T1S
@ 2C VGETEXPPS; fp; feature=avx512f
VGETEXPPS     | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 42 /r      | FV
VGETEXPPS     | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 42 /r      | FV
VGETEXPPS     | W:zmm1{k1}{z}, zmm2/m512/m32bcst{sae}        | RM   | EVEX.512.66.0F38.W0 42 /r      | FV
@ 2C VGETEXPPD; fp; feature=avx512f
VGETEXPPD     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 42 /r      | FV
VGETEXPPD     | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 42 /r      | FV
VGETEXPPD     | W:zmm1{k1}{z}, zmm2/m512/m64bcst{sae}        | RM   | EVEX.512.66.0F38.W1 42 /r      | FV
@ 2C VGETEXPSS; fp; feature=avx512f
VGETEXPSS     | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}           | RVM  | EVEX.LIG.66.0F38.W0 43 /r      | T1S
@ 2C VGETEXPSD; fp; feature=avx512f
VGETEXPSD     | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}           | RVM  | EVEX.LIG.66.0F38.W1 43 /r      | T1S
@ 2C VGETMANTPS; fp; feature=avx512f
VGETMANTPS    | W:xmm1{k1}{z}, xmm2/m128/m32bcst, imm8       | RMI  | EVEX.128.66.0F3A.W0 26 /r ib   | FV
VGETMANTPS    | W:ymm1{k1}{z}, ymm2/m256/m32bcst, imm8       | RMI  | EVEX.256.66.0F3A.W0 26 /r ib   | FV
VGETMANTPS    | W:zmm1{k1}{z}, zmm2/m512/m32bcst{sae}, imm8  | RMI  | EVEX.512.66.0F3A.W0 26 /r ib   | FV
@ 2C VGETMANTPD; fp; feature=avx512f
VGETMANTPD    | W:xmm1{k1}{z}, xmm2/m128/m64bcst, imm8       | RMI  | EVEX.128.66.0F3A.W1 26 /r ib   | FV
VGETMANTPD    | W:ymm1{k1}{z}, ymm2/m256/m64bcst, imm8       | RMI  | EVEX.256.66.0F3A.W1 26 /r ib   | FV
VGETMANTPD    | W:zmm1{k1}{z}, zmm2/m512/m64bcst{sae}, imm8  | RMI  | EVEX.512.66.0F3A.W1 26 /r ib   | FV
@ 2C VGETMANTSS; fp; feature=avx512f
VGETMANTSS    | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W0 27 /r ib   | T1S
@ 2C VGETMANTSD; fp; feature=avx512f
VGETMANTSD    | W:xmm1{k1}{z}, xmm2, xmm3/m64{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W1 27 /r ib   | T1S
@ 2C VFIXUPIMMPS; fp; feature=avx512f
VFIXUPIMMPS   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m32bcst, imm8 | RVMI | EVEX.128.66.0F3A.W0 54 /r ib   | FV
VFIXUPIMMPS   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m32bcst, imm8 | RVMI | EVEX.256.66.0F3A.W0 54 /r ib   | FV
VFIXUPIMMPS   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m32bcst{sae}, imm8 | RVMI | EVEX.512.66.0F3A.W0 54 /r ib | FV
@ 2C VFIXUPIMMPD; fp; feature=avx512f
VFIXUPIMMPD   | X:xmm1{k1}{z}, xmm2, xmm3/m128/m64bcst, imm8 | RVMI | EVEX.128.66.0F3A.W1 54 /r ib   | FV
VFIXUPIMMPD   | X:ymm1{k1}{z}, ymm2, ymm3/m256/m64bcst, imm8 | RVMI | EVEX.256.66.0F3A.W1 54 /r ib   | FV
VFIXUPIMMPD   | X:zmm1{k1}{z}, zmm2, zmm3/m512/m64bcst{sae}, imm8 | RVMI | EVEX.512.66.0F3A.W1 54 /r ib | FV
@ 2C VFIXUPIMMSS; fp; feature=avx512f
VFIXUPIMMSS   | X:xmm1{k1}{z}, xmm2, xmm3/m32{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W0 55 /r ib   | T1S
@ 2C VFIXUPIMMSD; fp; feature=avx512f
VFIXUPIMMSD   | X:xmm1{k1}{z}, xmm2, xmm3/m64{sae}, imm8     | RVMI | EVEX.LIG.66.0F3A.W1 55 /r ib   | T1S
@ 2C VRCP14PS; fp; feature=avx512f
VRCP14PS      | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 4C /r      | FV
VRCP14PS      | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 4C /r      | FV
VRCP14PS      | W:zmm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.66.0F38.W0 4C /r      | FV
@ 2C VRCP14PD; fp; feature=avx512f
VRCP14PD      | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 4C /r      | FV
VRCP14PD      | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 4C /r      | FV
VRCP14PD      | W:zmm1{k1}{z}, zmm2/m512/m64bcst             | RM   | EVEX.512.66.0F38.W1 4C /r      | FV
@ 2C VRCP14SS; fp; feature=avx512f
VRCP14SS      | W:xmm1{k1}{z}, xmm2, xmm3/m32                | RVM  | EVEX.LIG.66.0F38.W0 4D /r      | T1S
@ 2C VRCP14SD; fp; feature=avx512f
VRCP14SD      | W:xmm1{k1}{z}, xmm2, xmm3/m64                | RVM  | EVEX.LIG.66.0F38.W1 4D /r      | T1S
@ 2C VRSQRT14PS; fp; feature=avx512f
VRSQRT14PS    | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F38.W0 4E /r      | FV
VRSQRT14PS    | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F38.W0 4E /r      | FV
VRSQRT14PS    | W:zmm1{k1}{z}, zmm2/m512/m32bcst             | RM   | EVEX.512.66.0F38.W0 4E /r      | FV
@ 2C VRSQRT14PD; fp; feature=avx512f
VRSQRT14PD    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F38.W1 4E /r      | FV
VRSQRT14PD    | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F38.W1 4E /r      | FV
VRSQRT14PD    | W:zmm1{k1}{z}, zmm2/m512/m64bcst             | RM   | EVEX.512.66.0F38.W1 4E /r      | FV
@ 2C VRSQRT14SS; fp; feature=avx512f
VRSQRT14SS    | W:xmm1{k1}{z}, xmm2, xmm3/m32                | RVM  | EVEX.LIG.66.0F38.W0 4F /r      | T1S
@ 2C VRSQRT14SD; fp; feature=avx512f
VRSQRT14SD    | W:xmm1{k1}{z}, xmm2, xmm3/m64                | RVM  | EVEX.LIG.66.0F38.W1 4F /r      | T1S
"""
