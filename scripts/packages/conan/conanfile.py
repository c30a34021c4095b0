"""A recipe for Conan 2. It builds the checkout that it is in, with cargo:

    conan create scripts/packages/conan
    conan create scripts/packages/conan -o "librip/*:shared=False"

Programs then use find_package(librip) and the target librip::librip.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load, rm, rmdir


class Librip(ConanFile):
    name = "librip"
    description = "Records where each thread is and which locks it holds, in a file that outlives the process"
    license = "Apache-2.0 OR MIT"
    settings = "os", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    package_type = "library"

    def _checkout(self):
        return os.path.abspath(os.path.join(self.recipe_folder, "../../.."))

    def set_version(self):
        self.version = re.search(r'^version = "(.*)"', load(self, os.path.join(self._checkout(), "Cargo.toml")), re.M)[1]

    def export_sources(self):
        without = "target/*", "*/target/*", ".git/*", "*/node_modules/*"
        copy(self, "*", self._checkout(), self.export_sources_folder, excludes=without)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("librip records on Linux, on x86-64 and aarch64")

    def build(self):
        # install-c reads these variables.
        target = os.path.join(self.build_folder, "target")
        outer = "-u DESTDIR -u LIBDIR -u INCLUDEDIR"
        here = f"PREFIX='{self.package_folder}' CARGO_TARGET_DIR='{target}'"
        self.run(f"env {outer} {here} '{self.source_folder}/scripts/install-c'")

    def package(self):
        lib = os.path.join(self.package_folder, "lib")
        # Conan writes its own, for what it knows of the consumer.
        rmdir(self, os.path.join(lib, "cmake"))
        rmdir(self, os.path.join(lib, "pkgconfig"))
        rm(self, "*.a" if self.options.shared else "*.so*", lib)
        copy(self, "LICENSE-*", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["rip"]
        self.cpp_info.system_libs = ["pthread"] if self.options.shared else ["pthread", "dl", "m"]
        self.cpp_info.set_property("cmake_target_name", "librip::librip")
        self.cpp_info.set_property("pkg_config_name", "librip")
