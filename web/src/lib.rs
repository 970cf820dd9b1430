//! The testbed in a web page. JavaScript writes a request into [`input`], calls [`call`] and reads the answer from
//! [`output`]; `session.rs` says what requests there are. A panic traps; its message is then the output.

mod session;

use session::Session;
use std::cell::RefCell;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The address of `length` bytes for the next request.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Answers the request and returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    std::panic::set_hook(Box::new(|info| {
        OUTPUT.with_borrow_mut(|output| *output = info.to_string().into_bytes());
    }));
    let request = INPUT.take();
    let answer = SESSION.with_borrow_mut(|session| session.answer(&request));
    OUTPUT.with_borrow_mut(|output| *output = answer);
    output_length()
}

/// The address of the answer, or of the message of a panic.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// Its length.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}
