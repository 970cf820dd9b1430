//! With the feature `tracing`, events say why an endpoint waits.

use crate::common::node::Node;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};
use tracing::Dispatch;
use tracing_subscriber::fmt::MakeWriter;

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;
    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// While a program has one dispatcher, tracing asks that of the present thread whether a call site is of
/// interest, and remembers the answer: a test of another thread that reaches the call site first would
/// silence it for this one.
fn have_a_second_dispatcher() {
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
}

/// The reasons why `node` waits in `scene`, with their spans.
fn reasons(node: &mut Node, scene: impl FnOnce(&mut Node)) -> Vec<String> {
    have_a_second_dispatcher();
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(subscriber, || scene(node));
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("TRACE ebbtide::wait: waits "));
    lines.map(|line| line[line.find("sent=").unwrap()..].to_owned()).collect()
}

#[test]
fn a_request_that_is_not_answered_says_which_timeout_it_waits_for() {
    let mut node = Node::under("default");
    let said = reasons(&mut node, |node| {
        node.get();
        node.wait(1000.0);
    });
    let chosen = "no answer yet; congestion control chose this timeout";
    let seconds = [2, 4, 8, 16, 32];
    let expected: Vec<String> = (1..)
        .zip(seconds)
        .map(|(sent, wait)| format!("sent={sent} span={wait}s reason=\"{chosen}\""))
        .collect();
    assert_eq!(said, expected);
}

#[test]
fn a_request_behind_nstart_and_one_whose_answer_is_due_say_so() {
    let mut node = Node::under("default");
    let said = reasons(&mut node, |node| {
        node.get();
        node.get();
        let sent = node.take();
        node.arrive(&sent[0].ack());
    });
    let said: Vec<&str> = said.iter().map(|line| &line[line.find("reason=").unwrap()..]).collect();
    let chosen = "reason=\"no answer yet; congestion control chose this timeout\"";
    let blocked = "reason=\"as many exchanges are open as congestion control allows (NSTART)\"";
    let due = "reason=\"nothing is sent any more; the answer is due\"";
    assert_eq!(said, [chosen, blocked, due, chosen]);
}

#[test]
fn a_timeout_that_is_extended_for_patience_says_so() {
    let mut node = Node::under("ebb");
    for _ in 0..20 {
        node.get();
        node.wait(0.011);
        for sent in node.take() {
            node.arrive(&sent.answer());
        }
    }
    let said = reasons(&mut node, |node| {
        node.get();
        node.wait(1000.0);
    });
    assert!(
        said.last().unwrap().contains("the timeout is extended to MAX_TRANSMIT_SPAN"),
        "{said:?}"
    );
}
