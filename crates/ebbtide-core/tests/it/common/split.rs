//! A connection that is fed the same bytes whole and in pieces.

use ebbtide_core::stream::{Config, Connection, Event, Input, Received};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Framing, Opt, OptionNumber};

/// What came out of a connection, in order, and what it then had to send.
#[derive(Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) messages: Vec<String>,
    pub(crate) output: Vec<u8>,
}

/// Two requests of ours are open, one of them an observation, so that answers can find them.
const PATH: [Opt<'static>; 2] = [
    Opt { number: OptionNumber::OBSERVE, value: &[] },
    Opt { number: OptionNumber::URI_PATH, value: b"a" },
];

/// Feeds `bytes` in pieces of these lengths, over and over, and answers every request.
pub(crate) fn hear(bytes: &[u8], pieces: &[u8]) -> Heard {
    let config = Config {
        max_message_size: 4000,
        max_unanswered: 8,
        max_token_length: 40,
        ..Config::default()
    };
    let now = Instant::ZERO;
    let mut connection = Connection::new(now, Framing::Stream, config);
    for options in [&PATH[..], &PATH[1..]] {
        let get = Content { code: Code::GET, options, payload: &[] };
        assert!(connection.request(now, &get).is_ok());
    }
    let mut input = Input::default();
    let mut heard = Heard { messages: Vec::new(), output: Vec::new() };
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let expected = connection.expects();
        assert!(expected <= 4000, "no more than Max-Message-Size");
        let room = input.room(expected);
        let len = usize::from(*lengths.next().unwrap_or(&255)).clamp(1, room.len()).min(rest.len());
        let (piece, after) = rest.split_at(len);
        room[..len].copy_from_slice(piece);
        input.filled(len);
        rest = after;
        while let Some(taken) = connection.handle_input(now, input.unread()) {
            assert!(taken.bytes > 0 && taken.bytes <= input.unread().len());
            let bytes = taken.bytes;
            let over = matches!(
                taken.received,
                Received::Ignored(ebbtide_core::stream::Ignored::AfterEnd)
            );
            if !over {
                heard.messages.push(format!("{:?}", taken.received));
            }
            if let Received::Request(incoming, message) = taken.received {
                // The peer's CSM may say nothing: then it takes 1152 bytes.
                let payload = &message.payload()[..message.payload().len().min(1000)];
                let answer = Content { code: Code::CONTENT, options: &[], payload };
                // Unless it takes even less.
                if connection.respond(now, &incoming, &answer).is_err() {
                    connection.dismiss(now, &incoming);
                }
            }
            input.take(bytes);
            drain(&mut connection, now, &mut heard);
        }
    }
    let unanswered = connection.unanswered();
    assert!(unanswered == 0, "each was answered at once");
    // Whatever came, everything ends.
    connection.handle_eof(now);
    drain(&mut connection, now, &mut heard);
    let end = now + Duration::from_secs(1000);
    connection.handle_timeout(end);
    drain(&mut connection, end, &mut heard);
    assert_eq!(connection.open_requests(), 0);
    assert_eq!(connection.poll_event(), None);
    heard
}

fn drain(connection: &mut Connection, now: Instant, heard: &mut Heard) {
    while !connection.poll_transmit().is_empty() {
        let bytes = connection.poll_transmit();
        let len = bytes.len();
        heard.output.extend_from_slice(bytes);
        connection.handle_transmitted(now, len);
    }
    while let Some(event) = connection.poll_event() {
        heard.messages.push(format!("{event:?}"));
        if matches!(event, Event::Closed(_)) {
            assert!(connection.poll_event().is_none(), "nothing after the end");
        }
    }
}

/// The first byte says how many follow that are lengths of pieces; what follows these is heard, and
/// must be heard alike however it is cut.
pub(crate) fn play(script: &[u8]) {
    let Some((&count, rest)) = script.split_first() else { return };
    let (pieces, bytes) = rest.split_at(usize::from(count % 8).min(rest.len()));
    let whole = hear(bytes, &[255]);
    assert_eq!(whole, hear(bytes, &[1]));
    if !pieces.is_empty() {
        assert_eq!(whole, hear(bytes, pieces));
    }
}
