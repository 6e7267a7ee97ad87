"""What the entry points of this package name: the CPU device and its renderers."""
from tinyhost.plugin.v1 import HOST, DeviceSpec, EnvVar, RendererSpec

CPU = DeviceSpec(
    name="CPU",
    device_class="tinyhost_cpu.device:CPUDevice",
    capabilities="tinyhost_cpu.target:capabilities",
    renderers=("CPU.X86", "CPU.LLVM", "CPU.CLANG"),
    roles=frozenset({HOST}),
    probe="tinyhost_cpu.target:probe",
    default_arch="tinyhost_cpu.target:default_arch",
    env=(EnvVar("CPU_TIMEOUT_MS", "milliseconds after which a kernel that has not ended is stopped"),),
    install_hint="the X86 renderer needs an x86-64 processor with AVX2 and FMA; elsewhere install a C compiler "
                 "(DEV=CPU:CLANG) or pip install tinyhost-cpu[llvm] (DEV=CPU:LLVM)",
)
CPU_X86 = RendererSpec("CPU.X86", renderer_class="tinyhost_cpu.x86.renderer:X86Renderer",
                       available="tinyhost_cpu.target:x86_missing",
                       install_hint="needs an x86-64 processor with AVX2 and FMA")
CPU_CLANG = RendererSpec("CPU.CLANG", renderer_class="tinyhost_cpu.clang:ClangRenderer",
                         capabilities="tinyhost_cpu.clang:clang_capabilities",
                         available="tinyhost_cpu.clang:missing",
                         install_hint="install clang or gcc, or set CC to a C compiler")
CPU_LLVM = RendererSpec("CPU.LLVM", renderer_class="tinyhost_cpu.llvm:LLVMRenderer",
                        capabilities="tinyhost_cpu.llvm:capabilities",
                        available="tinyhost_cpu.llvm:missing", install_hint="pip install tinyhost-cpu[llvm]")
