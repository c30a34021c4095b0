//! Other preloaded libraries, which replace functions of the C library too.

use crate::{compile, compile_as, expect_same, plan, preload};

/// The replacements lock a mutex. If a first mark called one of them, that lock would come back to the recorder.
#[test]
fn recording_calls_no_function_that_another_library_may_have_replaced() {
    let library = compile("replacing", &["-fPIC", "-shared"]);
    let program = compile_as("replacing", "replacing-program", &["-DPROGRAM"]);
    let without = plan(&program, &[], &[&library]).run();
    without.expect_success();
    for libraries in [[preload(), &library], [&library, preload()]] {
        for clock in ["off", "contended", "ticks", "all"] {
            let with =
                plan(&program, &[], &libraries).env("RIP_CLOCK", clock).env("RIP_KEEP", "always").run();
            expect_same(&with, &without);
            assert_eq!(with.ring().slots.len(), 11, "{clock}");
        }
    }
}
