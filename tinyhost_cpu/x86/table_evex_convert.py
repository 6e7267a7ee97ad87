"""Vector instructions, part 6 (EVEX): conversions between formats and widths (AVX-512).

``forms`` says how lines are read.
"""
TABLE = """
@ 2A CVTDQ2PS; cvt; feature=avx512f
VCVTDQ2PS     | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.0F.W0 5B /r           | FV
VCVTDQ2PS     | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.0F.W0 5B /r           | FV
VCVTDQ2PS     | W:zmm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.0F.W0 5B /r           | FV
@ 2A CVTDQ2PD; cvt; feature=avx512f
VCVTDQ2PD     | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.F3.0F.W0 E6 /r        | HV
VCVTDQ2PD     | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.F3.0F.W0 E6 /r        | HV
VCVTDQ2PD     | W:zmm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.512.F3.0F.W0 E6 /r        | HV
@ 2A CVTPS2DQ; cvt; feature=avx512f
VCVTPS2DQ     | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.66.0F.W0 5B /r        | FV
VCVTPS2DQ     | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.66.0F.W0 5B /r        | FV
VCVTPS2DQ     | W:zmm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.66.0F.W0 5B /r        | FV
@ 2A CVTTPS2DQ; cvt; feature=avx512f
VCVTTPS2DQ    | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.F3.0F.W0 5B /r        | FV
VCVTTPS2DQ    | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.F3.0F.W0 5B /r        | FV
VCVTTPS2DQ    | W:zmm1{k1}{z}, zmm2/m512/m32bcst{sae}        | RM   | EVEX.512.F3.0F.W0 5B /r        | FV
@ 2A CVTPD2DQ; cvt; feature=avx512f
VCVTPD2DQ     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.F2.0F.W1 E6 /r        | FV
VCVTPD2DQ     | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.F2.0F.W1 E6 /r        | FV
VCVTPD2DQ     | W:ymm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.F2.0F.W1 E6 /r        | FV
@ 2A CVTTPD2DQ; cvt; feature=avx512f
VCVTTPD2DQ    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 E6 /r        | FV
VCVTTPD2DQ    | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 E6 /r        | FV
VCVTTPD2DQ    | W:ymm1{k1}{z}, zmm2/m512/m64bcst{sae}        | RM   | EVEX.512.66.0F.W1 E6 /r        | FV
@ 2A CVTPS2PD; cvt; feature=avx512f
VCVTPS2PD     | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.0F.W0 5A /r           | HV
VCVTPS2PD     | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.0F.W0 5A /r           | HV
VCVTPS2PD     | W:zmm1{k1}{z}, ymm2/m256/m32bcst{sae}        | RM   | EVEX.512.0F.W0 5A /r           | HV
@ 2A CVTPD2PS; cvt; feature=avx512f
VCVTPD2PS     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 5A /r        | FV
VCVTPD2PS     | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 5A /r        | FV
VCVTPD2PS     | W:ymm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.66.0F.W1 5A /r        | FV
@ 2A CVTSS2SD; cvt; feature=avx512f
VCVTSS2SD     | W:xmm1{k1}{z}, xmm2, xmm3/m32{sae}           | RVM  | EVEX.LIG.F3.0F.W0 5A /r        | T1S
@ 2A CVTSD2SS; cvt; feature=avx512f
VCVTSD2SS     | W:xmm1{k1}{z}, xmm2, xmm3/m64{er}            | RVM  | EVEX.LIG.F2.0F.W1 5A /r        | T1S
@ 2A CVTSI2SS; cvt; feature=avx512f
VCVTSI2SS     | W:xmm1, xmm2, r/m32{er}                      | RVM  | EVEX.LIG.F3.0F.W0 2A /r        | T1S
VCVTSI2SS     | W:xmm1, xmm2, r/m64{er}                      | RVM  | EVEX.LIG.F3.0F.W1 2A /r        | T1S
@ 2A CVTSI2SD; cvt; feature=avx512f
VCVTSI2SD     | W:xmm1, xmm2, r/m32                          | RVM  | EVEX.LIG.F2.0F.W0 2A /r        | T1S
VCVTSI2SD     | W:xmm1, xmm2, r/m64{er}                      | RVM  | EVEX.LIG.F2.0F.W1 2A /r        | T1S
@ 2A CVTSS2SI; cvt; feature=avx512f
VCVTSS2SI     | W:r32, xmm1/m32{er}                          | RM   | EVEX.LIG.F3.0F.W0 2D /r        | T1F
VCVTSS2SI     | W:r64, xmm1/m32{er}                          | RM   | EVEX.LIG.F3.0F.W1 2D /r        | T1F
@ 2A CVTSD2SI; cvt; feature=avx512f
VCVTSD2SI     | W:r32, xmm1/m64{er}                          | RM   | EVEX.LIG.F2.0F.W0 2D /r        | T1F
VCVTSD2SI     | W:r64, xmm1/m64{er}                          | RM   | EVEX.LIG.F2.0F.W1 2D /r        | T1F
@ 2A CVTTSS2SI; cvt; feature=avx512f
VCVTTSS2SI    | W:r32, xmm1/m32{sae}                         | RM   | EVEX.LIG.F3.0F.W0 2C /r        | T1F
VCVTTSS2SI    | W:r64, xmm1/m32{sae}                         | RM   | EVEX.LIG.F3.0F.W1 2C /r        | T1F
@ 2A CVTTSD2SI; cvt; feature=avx512f
VCVTTSD2SI    | W:r32, xmm1/m64{sae}                         | RM   | EVEX.LIG.F2.0F.W0 2C /r        | T1F
VCVTTSD2SI    | W:r64, xmm1/m64{sae}                         | RM   | EVEX.LIG.F2.0F.W1 2C /r        | T1F
@ 2C VCVTUDQ2PS; cvt; feature=avx512f
VCVTUDQ2PS    | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.F2.0F.W0 7A /r        | FV
VCVTUDQ2PS    | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.F2.0F.W0 7A /r        | FV
VCVTUDQ2PS    | W:zmm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.F2.0F.W0 7A /r        | FV
@ 2C VCVTUDQ2PD; cvt; feature=avx512f
VCVTUDQ2PD    | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.F3.0F.W0 7A /r        | HV
VCVTUDQ2PD    | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.F3.0F.W0 7A /r        | HV
VCVTUDQ2PD    | W:zmm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.512.F3.0F.W0 7A /r        | HV
@ 2C VCVTQQ2PS; cvt; feature=avx512dq
VCVTQQ2PS     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.0F.W1 5B /r           | FV
VCVTQQ2PS     | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.0F.W1 5B /r           | FV
VCVTQQ2PS     | W:ymm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.0F.W1 5B /r           | FV
@ 2C VCVTQQ2PD; cvt; feature=avx512dq
VCVTQQ2PD     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.F3.0F.W1 E6 /r        | FV
VCVTQQ2PD     | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.F3.0F.W1 E6 /r        | FV
VCVTQQ2PD     | W:zmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.F3.0F.W1 E6 /r        | FV
@ 2C VCVTUQQ2PS; cvt; feature=avx512dq
VCVTUQQ2PS    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.F2.0F.W1 7A /r        | FV
VCVTUQQ2PS    | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.F2.0F.W1 7A /r        | FV
VCVTUQQ2PS    | W:ymm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.F2.0F.W1 7A /r        | FV
@ 2C VCVTUQQ2PD; cvt; feature=avx512dq
VCVTUQQ2PD    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.F3.0F.W1 7A /r        | FV
VCVTUQQ2PD    | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.F3.0F.W1 7A /r        | FV
VCVTUQQ2PD    | W:zmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.F3.0F.W1 7A /r        | FV
@ 2C VCVTPS2UDQ; cvt; feature=avx512f
VCVTPS2UDQ    | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.0F.W0 79 /r           | FV
VCVTPS2UDQ    | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.0F.W0 79 /r           | FV
VCVTPS2UDQ    | W:zmm1{k1}{z}, zmm2/m512/m32bcst{er}         | RM   | EVEX.512.0F.W0 79 /r           | FV
@ 2C VCVTTPS2UDQ; cvt; feature=avx512f
VCVTTPS2UDQ   | W:xmm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.128.0F.W0 78 /r           | FV
VCVTTPS2UDQ   | W:ymm1{k1}{z}, ymm2/m256/m32bcst             | RM   | EVEX.256.0F.W0 78 /r           | FV
VCVTTPS2UDQ   | W:zmm1{k1}{z}, zmm2/m512/m32bcst{sae}        | RM   | EVEX.512.0F.W0 78 /r           | FV
@ 2C VCVTPD2UDQ; cvt; feature=avx512f
VCVTPD2UDQ    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.0F.W1 79 /r           | FV
VCVTPD2UDQ    | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.0F.W1 79 /r           | FV
VCVTPD2UDQ    | W:ymm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.0F.W1 79 /r           | FV
@ 2C VCVTTPD2UDQ; cvt; feature=avx512f
VCVTTPD2UDQ   | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.0F.W1 78 /r           | FV
VCVTTPD2UDQ   | W:xmm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.0F.W1 78 /r           | FV
VCVTTPD2UDQ   | W:ymm1{k1}{z}, zmm2/m512/m64bcst{sae}        | RM   | EVEX.512.0F.W1 78 /r           | FV
@ 2C VCVTPS2QQ; cvt; feature=avx512dq
VCVTPS2QQ     | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.66.0F.W0 7B /r        | HV
VCVTPS2QQ     | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.66.0F.W0 7B /r        | HV
VCVTPS2QQ     | W:zmm1{k1}{z}, ymm2/m256/m32bcst{er}         | RM   | EVEX.512.66.0F.W0 7B /r        | HV
@ 2C VCVTTPS2QQ; cvt; feature=avx512dq
VCVTTPS2QQ    | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.66.0F.W0 7A /r        | HV
VCVTTPS2QQ    | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.66.0F.W0 7A /r        | HV
VCVTTPS2QQ    | W:zmm1{k1}{z}, ymm2/m256/m32bcst{sae}        | RM   | EVEX.512.66.0F.W0 7A /r        | HV
@ 2C VCVTPD2QQ; cvt; feature=avx512dq
VCVTPD2QQ     | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 7B /r        | FV
VCVTPD2QQ     | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 7B /r        | FV
VCVTPD2QQ     | W:zmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.66.0F.W1 7B /r        | FV
@ 2C VCVTTPD2QQ; cvt; feature=avx512dq
VCVTTPD2QQ    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 7A /r        | FV
VCVTTPD2QQ    | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 7A /r        | FV
VCVTTPD2QQ    | W:zmm1{k1}{z}, zmm2/m512/m64bcst{sae}        | RM   | EVEX.512.66.0F.W1 7A /r        | FV
@ 2C VCVTPS2UQQ; cvt; feature=avx512dq
VCVTPS2UQQ    | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.66.0F.W0 79 /r        | HV
VCVTPS2UQQ    | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.66.0F.W0 79 /r        | HV
VCVTPS2UQQ    | W:zmm1{k1}{z}, ymm2/m256/m32bcst{er}         | RM   | EVEX.512.66.0F.W0 79 /r        | HV
@ 2C VCVTTPS2UQQ; cvt; feature=avx512dq
VCVTTPS2UQQ   | W:xmm1{k1}{z}, xmm2/m64/m32bcst              | RM   | EVEX.128.66.0F.W0 78 /r        | HV
VCVTTPS2UQQ   | W:ymm1{k1}{z}, xmm2/m128/m32bcst             | RM   | EVEX.256.66.0F.W0 78 /r        | HV
VCVTTPS2UQQ   | W:zmm1{k1}{z}, ymm2/m256/m32bcst{sae}        | RM   | EVEX.512.66.0F.W0 78 /r        | HV
@ 2C VCVTPD2UQQ; cvt; feature=avx512dq
VCVTPD2UQQ    | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 79 /r        | FV
VCVTPD2UQQ    | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 79 /r        | FV
VCVTPD2UQQ    | W:zmm1{k1}{z}, zmm2/m512/m64bcst{er}         | RM   | EVEX.512.66.0F.W1 79 /r        | FV
@ 2C VCVTTPD2UQQ; cvt; feature=avx512dq
VCVTTPD2UQQ   | W:xmm1{k1}{z}, xmm2/m128/m64bcst             | RM   | EVEX.128.66.0F.W1 78 /r        | FV
VCVTTPD2UQQ   | W:ymm1{k1}{z}, ymm2/m256/m64bcst             | RM   | EVEX.256.66.0F.W1 78 /r        | FV
VCVTTPD2UQQ   | W:zmm1{k1}{z}, zmm2/m512/m64bcst{sae}        | RM   | EVEX.512.66.0F.W1 78 /r        | FV
@ 2C VCVTUSI2SS; cvt; feature=avx512f
VCVTUSI2SS    | W:xmm1, xmm2, r/m32{er}                      | RVM  | EVEX.LIG.F3.0F.W0 7B /r        | T1S
VCVTUSI2SS    | W:xmm1, xmm2, r/m64{er}                      | RVM  | EVEX.LIG.F3.0F.W1 7B /r        | T1S
@ 2C VCVTUSI2SD; cvt; feature=avx512f
VCVTUSI2SD    | W:xmm1, xmm2, r/m32                          | RVM  | EVEX.LIG.F2.0F.W0 7B /r        | T1S
VCVTUSI2SD    | W:xmm1, xmm2, r/m64{er}                      | RVM  | EVEX.LIG.F2.0F.W1 7B /r        | T1S
@ 2C VCVTSS2USI; cvt; feature=avx512f
VCVTSS2USI    | W:r32, xmm1/m32{er}                          | RM   | EVEX.LIG.F3.0F.W0 79 /r        | T1F
VCVTSS2USI    | W:r64, xmm1/m32{er}                          | RM   | EVEX.LIG.F3.0F.W1 79 /r        | T1F
@ 2C VCVTSD2USI; cvt; feature=avx512f
VCVTSD2USI    | W:r32, xmm1/m64{er}                          | RM   | EVEX.LIG.F2.0F.W0 79 /r        | T1F
VCVTSD2USI    | W:r64, xmm1/m64{er}                          | RM   | EVEX.LIG.F2.0F.W1 79 /r        | T1F
@ 2C VCVTTSS2USI; cvt; feature=avx512f
VCVTTSS2USI   | W:r32, xmm1/m32{sae}                         | RM   | EVEX.LIG.F3.0F.W0 78 /r        | T1F
VCVTTSS2USI   | W:r64, xmm1/m32{sae}                         | RM   | EVEX.LIG.F3.0F.W1 78 /r        | T1F
@ 2C VCVTTSD2USI; cvt; feature=avx512f
VCVTTSD2USI   | W:r32, xmm1/m64{sae}                         | RM   | EVEX.LIG.F2.0F.W0 78 /r        | T1F
VCVTTSD2USI   | W:r64, xmm1/m64{sae}                         | RM   | EVEX.LIG.F2.0F.W1 78 /r        | T1F
@ 2C VCVTPH2PS; cvt; feature=avx512f
VCVTPH2PS     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.W0 13 /r      | HVM
VCVTPH2PS     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.W0 13 /r      | HVM
VCVTPH2PS     | W:zmm1{k1}{z}, ymm2/m256{sae}                | RM   | EVEX.512.66.0F38.W0 13 /r      | HVM
@ 2C VCVTPS2PH; cvt; feature=avx512f
VCVTPS2PH     | W:xmm1/m64{k1}{z}, xmm2, imm8                | MRI  | EVEX.128.66.0F3A.W0 1D /r ib   | HVM
VCVTPS2PH     | W:xmm1/m128{k1}{z}, ymm2, imm8               | MRI  | EVEX.256.66.0F3A.W0 1D /r ib   | HVM
VCVTPS2PH     | W:ymm1/m256{k1}{z}, zmm2{sae}, imm8          | MRI  | EVEX.512.66.0F3A.W0 1D /r ib   | HVM
@ 2B PMOVSX; shuf; feature=avx512bw
VPMOVSXBW     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.WIG 20 /r     | HVM
VPMOVSXBW     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.WIG 20 /r     | HVM
VPMOVSXBW     | W:zmm1{k1}{z}, ymm2/m256                     | RM   | EVEX.512.66.0F38.WIG 20 /r     | HVM
@ 2B PMOVSX; shuf; feature=avx512f
VPMOVSXBD     | W:xmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.128.66.0F38.WIG 21 /r     | QVM
VPMOVSXBD     | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.WIG 21 /r     | QVM
VPMOVSXBD     | W:zmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.512.66.0F38.WIG 21 /r     | QVM
VPMOVSXBQ     | W:xmm1{k1}{z}, xmm2/m16                      | RM   | EVEX.128.66.0F38.WIG 22 /r     | OVM
VPMOVSXBQ     | W:ymm1{k1}{z}, xmm2/m32                      | RM   | EVEX.256.66.0F38.WIG 22 /r     | OVM
VPMOVSXBQ     | W:zmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.512.66.0F38.WIG 22 /r     | OVM
VPMOVSXWD     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.WIG 23 /r     | HVM
VPMOVSXWD     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.WIG 23 /r     | HVM
VPMOVSXWD     | W:zmm1{k1}{z}, ymm2/m256                     | RM   | EVEX.512.66.0F38.WIG 23 /r     | HVM
VPMOVSXWQ     | W:xmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.128.66.0F38.WIG 24 /r     | QVM
VPMOVSXWQ     | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.WIG 24 /r     | QVM
VPMOVSXWQ     | W:zmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.512.66.0F38.WIG 24 /r     | QVM
VPMOVSXDQ     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.W0 25 /r      | HVM
VPMOVSXDQ     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.W0 25 /r      | HVM
VPMOVSXDQ     | W:zmm1{k1}{z}, ymm2/m256                     | RM   | EVEX.512.66.0F38.W0 25 /r      | HVM
@ 2B PMOVZX; shuf; feature=avx512bw
VPMOVZXBW     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.WIG 30 /r     | HVM
VPMOVZXBW     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.WIG 30 /r     | HVM
VPMOVZXBW     | W:zmm1{k1}{z}, ymm2/m256                     | RM   | EVEX.512.66.0F38.WIG 30 /r     | HVM
@ 2B PMOVZX; shuf; feature=avx512f
VPMOVZXBD     | W:xmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.128.66.0F38.WIG 31 /r     | QVM
VPMOVZXBD     | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.WIG 31 /r     | QVM
VPMOVZXBD     | W:zmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.512.66.0F38.WIG 31 /r     | QVM
VPMOVZXBQ     | W:xmm1{k1}{z}, xmm2/m16                      | RM   | EVEX.128.66.0F38.WIG 32 /r     | OVM
VPMOVZXBQ     | W:ymm1{k1}{z}, xmm2/m32                      | RM   | EVEX.256.66.0F38.WIG 32 /r     | OVM
VPMOVZXBQ     | W:zmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.512.66.0F38.WIG 32 /r     | OVM
VPMOVZXWD     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.WIG 33 /r     | HVM
VPMOVZXWD     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.WIG 33 /r     | HVM
VPMOVZXWD     | W:zmm1{k1}{z}, ymm2/m256                     | RM   | EVEX.512.66.0F38.WIG 33 /r     | HVM
VPMOVZXWQ     | W:xmm1{k1}{z}, xmm2/m32                      | RM   | EVEX.128.66.0F38.WIG 34 /r     | QVM
VPMOVZXWQ     | W:ymm1{k1}{z}, xmm2/m64                      | RM   | EVEX.256.66.0F38.WIG 34 /r     | QVM
VPMOVZXWQ     | W:zmm1{k1}{z}, xmm2/m128                     | RM   | EVEX.512.66.0F38.WIG 34 /r     | QVM
VPMOVZXDQ     | W:xmm1{k1}{z}, xmm2/m64                      | RM   | EVEX.128.66.0F38.W0 35 /r      | HVM
VPMOVZXDQ     | W:ymm1{k1}{z}, xmm2/m128                     | RM   | EVEX.256.66.0F38.W0 35 /r      | HVM
VPMOVZXDQ     | W:zmm1{k1}{z}, ymm2/m256                     | RM   | EVEX.512.66.0F38.W0 35 /r      | HVM
@ 2C VPMOVDB/VPMOVSDB/VPMOVUSDB; narrow; feature=avx512f
VPMOVDB       | W:xmm1/m32{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 31 /r      | QVM
VPMOVDB       | W:xmm1/m64{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 31 /r      | QVM
VPMOVDB       | W:xmm1/m128{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 31 /r      | QVM
VPMOVSDB      | W:xmm1/m32{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 21 /r      | QVM
VPMOVSDB      | W:xmm1/m64{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 21 /r      | QVM
VPMOVSDB      | W:xmm1/m128{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 21 /r      | QVM
VPMOVUSDB     | W:xmm1/m32{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 11 /r      | QVM
VPMOVUSDB     | W:xmm1/m64{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 11 /r      | QVM
VPMOVUSDB     | W:xmm1/m128{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 11 /r      | QVM
@ 2C VPMOVDW/VPMOVSDW/VPMOVUSDW; narrow; feature=avx512f
VPMOVDW       | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 33 /r      | HVM
VPMOVDW       | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 33 /r      | HVM
VPMOVDW       | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 33 /r      | HVM
VPMOVSDW      | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 23 /r      | HVM
VPMOVSDW      | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 23 /r      | HVM
VPMOVSDW      | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 23 /r      | HVM
VPMOVUSDW     | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 13 /r      | HVM
VPMOVUSDW     | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 13 /r      | HVM
VPMOVUSDW     | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 13 /r      | HVM
@ 2C VPMOVQB/VPMOVSQB/VPMOVUSQB; narrow; feature=avx512f
VPMOVQB       | W:xmm1/m16{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 32 /r      | OVM
VPMOVQB       | W:xmm1/m32{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 32 /r      | OVM
VPMOVQB       | W:xmm1/m64{k1}{z}, zmm2                      | MR   | EVEX.512.F3.0F38.W0 32 /r      | OVM
VPMOVSQB      | W:xmm1/m16{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 22 /r      | OVM
VPMOVSQB      | W:xmm1/m32{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 22 /r      | OVM
VPMOVSQB      | W:xmm1/m64{k1}{z}, zmm2                      | MR   | EVEX.512.F3.0F38.W0 22 /r      | OVM
VPMOVUSQB     | W:xmm1/m16{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 12 /r      | OVM
VPMOVUSQB     | W:xmm1/m32{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 12 /r      | OVM
VPMOVUSQB     | W:xmm1/m64{k1}{z}, zmm2                      | MR   | EVEX.512.F3.0F38.W0 12 /r      | OVM
@ 2C VPMOVQD/VPMOVSQD/VPMOVUSQD; narrow; feature=avx512f
VPMOVQD       | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 35 /r      | HVM
VPMOVQD       | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 35 /r      | HVM
VPMOVQD       | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 35 /r      | HVM
VPMOVSQD      | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 25 /r      | HVM
VPMOVSQD      | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 25 /r      | HVM
VPMOVSQD      | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 25 /r      | HVM
VPMOVUSQD     | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 15 /r      | HVM
VPMOVUSQD     | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 15 /r      | HVM
VPMOVUSQD     | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 15 /r      | HVM
@ 2C VPMOVQW/VPMOVSQW/VPMOVUSQW; narrow; feature=avx512f
VPMOVQW       | W:xmm1/m32{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 34 /r      | QVM
VPMOVQW       | W:xmm1/m64{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 34 /r      | QVM
VPMOVQW       | W:xmm1/m128{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 34 /r      | QVM
VPMOVSQW      | W:xmm1/m32{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 24 /r      | QVM
VPMOVSQW      | W:xmm1/m64{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 24 /r      | QVM
VPMOVSQW      | W:xmm1/m128{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 24 /r      | QVM
VPMOVUSQW     | W:xmm1/m32{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 14 /r      | QVM
VPMOVUSQW     | W:xmm1/m64{k1}{z}, ymm2                      | MR   | EVEX.256.F3.0F38.W0 14 /r      | QVM
VPMOVUSQW     | W:xmm1/m128{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 14 /r      | QVM
@ 2C VPMOVWB/VPMOVSWB/VPMOVUSWB; narrow; feature=avx512bw
VPMOVWB       | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 30 /r      | HVM
VPMOVWB       | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 30 /r      | HVM
VPMOVWB       | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 30 /r      | HVM
VPMOVSWB      | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 20 /r      | HVM
VPMOVSWB      | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 20 /r      | HVM
VPMOVSWB      | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 20 /r      | HVM
VPMOVUSWB     | W:xmm1/m64{k1}{z}, xmm2                      | MR   | EVEX.128.F3.0F38.W0 10 /r      | HVM
VPMOVUSWB     | W:xmm1/m128{k1}{z}, ymm2                     | MR   | EVEX.256.F3.0F38.W0 10 /r      | HVM
VPMOVUSWB     | W:ymm1/m256{k1}{z}, zmm2                     | MR   | EVEX.512.F3.0F38.W0 10 /r      | HVM
"""
