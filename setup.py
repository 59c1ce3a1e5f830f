"""The compiled part of the package; everything else is said in pyproject.toml.

``[[tool.setuptools.ext-modules]]`` could say most of it there. It is experimental, though: an sdist may meet
a setuptools that reads it in another way. And it cannot leave the extension out where Python has no limited
API.
"""

import os
import sysconfig
from glob import glob

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

# Free-threaded Pythons do not have the limited API of 3.11. They get the package without its compiled part.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")

WINDOWS = os.name == "nt"

KERNELS = Extension(
    "exclusivity.kernels._compiled",
    sources=sorted(glob("src/exclusivity/kernels/*.c")),
    depends=sorted(glob("src/exclusivity/kernels/*.h")),
    libraries=[] if WINDOWS else ["m"],
    # "simd" needs no OpenMP library; no option changes how a sum is rounded. MSVC knows none of them, has
    # /O2 from setuptools, and wants to be told that this is C11. Unknown pragmas change nothing.
    extra_compile_args=["/std:c11"]
    if WINDOWS
    else [
        "-O3",
        "-g0",  # the flags of Python ask for debugging data, which would be two thirds of the file
        "-fopenmp-simd",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-ffp-contract=off",
    ],
    py_limited_api=True,
    optional=True,  # without a compiler, or with one that refuses, the package is installed all the same
)


class Wheel(bdist_wheel):
    """A wheel that is named ``py3-none-any`` where the optional extension could not be compiled."""

    def run(self) -> None:
        """Compile first: only then is it known what the wheel is for."""
        self.run_command("build_ext")
        if not all(map(os.path.exists, self.get_finalized_command("build_ext").get_outputs())):
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()


setup(
    cmdclass={"bdist_wheel": Wheel},
    ext_modules=[KERNELS] if LIMITED_API else [],
    # One wheel per platform, for 3.11 and all later Pythons. Py_LIMITED_API in module.c says the same.
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)
