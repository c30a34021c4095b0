//! A SIGBUS that is none of librip's goes where it went before, also after librip has handled one of its own.

use crate::compare;

#[test]
fn a_sigbus_that_is_not_the_rings_is_handled_as_without_librip() {
    for handler in ["rust", "default", "ignore", "plain", "once", "info"] {
        for origin in ["fault", "sent", "raised"] {
            let remains = compare(&["sigbus", handler, origin], |plan| plan);
            eprintln!("{handler}, {origin}: {:?}, {:?}", remains.status, remains.stdout);
            // So that the comparison is not of two programs that did nothing.
            match (handler, origin) {
                ("plain" | "info", _) => {
                    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
                    assert_eq!(remains.stdout, "handled 1\nhandled 2\n");
                }
                ("ignore", "sent" | "raised") => {
                    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
                    assert_eq!(remains.stdout, "handled 0\nhandled 0\n");
                }
                ("once", _) => {
                    assert_eq!(remains.signal(), Some(libc::SIGBUS), "{remains:?}");
                    assert_eq!(remains.stdout, "handled 1\n");
                }
                _ => assert_eq!(remains.signal(), Some(libc::SIGBUS), "{remains:?}"),
            }
        }
    }
}
