//! A SIGBUS outside the ring is handled as without librip, even after librip has handled one in the ring.

use crate::compare;

#[test]
fn a_sigbus_outside_the_ring_is_handled_as_without_librip() {
    for handler in ["rust", "default", "ignore", "plain", "once", "info"] {
        for origin in ["fault", "sent", "raised"] {
            let remains = compare(&["sigbus", handler, origin], |plan| plan);
            eprintln!("{handler}, {origin}: {:?}, {:?}", remains.status, remains.stdout);
            // Make sure that the compared programs did something.
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
