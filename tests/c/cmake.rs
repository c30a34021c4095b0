//! What CMake needs: `find_package(librip)` and its targets. Without CMake, only the files are looked at.

use std::process::Command;

use crate::{directory, is_installed, prefix, tool};

const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.10)
project(server C CXX)
find_package(librip 0.1 REQUIRED)
foreach(library librip static)
  add_executable(server-${library} server.c locks.cc)
  target_link_libraries(server-${library} PRIVATE librip::${library})
endforeach()
";

const SERVER: &str = "\
#include <librip.h>
int main(void) { RIP_SNAP(); return 0; }
";

const LOCKS: &str = "\
#include <rip.hpp>
void locks();
void locks() {
    static rip::mutex mutex;
    std::lock_guard<rip::mutex> guard(mutex);
}
";

#[test]
fn cmake_finds_both_libraries() {
    let files = prefix().join("lib/cmake/librip");
    for name in ["librip-config.cmake", "librip-config-version.cmake"] {
        let text = std::fs::read_to_string(files.join(name)).unwrap();
        assert!(!text.contains('@'), "each variable has its value: {text}");
    }
    if !is_installed("cmake") {
        eprintln!("SKIPPED a project of CMake: cmake is not installed");
        return;
    }
    let project = tempfile::tempdir_in(directory()).unwrap();
    let built = project.path().join("built");
    std::fs::write(project.path().join("CMakeLists.txt"), PROJECT).unwrap();
    std::fs::write(project.path().join("server.c"), SERVER).unwrap();
    std::fs::write(project.path().join("locks.cc"), LOCKS).unwrap();
    let search = format!("-DCMAKE_PREFIX_PATH={}", prefix().display());
    tool(Command::new("cmake").arg("-S").arg(project.path()).arg("-B").arg(&built).arg(search));
    tool(Command::new("cmake").arg("--build").arg(&built));
    for program in ["server-librip", "server-static"] {
        assert!(Command::new(built.join(program)).status().unwrap().success(), "{program}");
    }
}
