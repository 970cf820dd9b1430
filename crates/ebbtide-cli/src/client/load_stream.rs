//! The load of `ebbtide bench coap+tcp://`: connections that send requests as fast as a window
//! allows, with the requests of one window in one write.

use super::load::{AnswerLog, BenchLoad, GRACE, LoadClock, Outcome, StartTimes, TICK};
use ebbtide_core::stream::{Config, Connection, Event, Input, Received};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Content, Framing, Opt, OptionNumber};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read, Write};

/// Generates the load.
pub(crate) fn run(load: &BenchLoad) -> io::Result<Outcome> {
    let mut poll = Poll::new()?;
    let mut options: Vec<Opt<'_>> = Vec::new();
    for segment in &load.path {
        options.push(Opt { number: OptionNumber::URI_PATH, value: segment.as_bytes() });
    }
    for argument in &load.query {
        options.push(Opt { number: OptionNumber::URI_QUERY, value: argument.as_bytes() });
    }
    let content = Content { code: load.code, options: &options, payload: &load.payload };
    let clock = LoadClock::start();
    let mut clients = Vec::new();
    for index in 0..load.clients {
        let mut client = StreamClient::new(load, clock.now())?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut client.stream, Token(index), interest)?;
        clients.push(client);
    }
    let mut run = StreamRun { load, content, asked: 0, answers: AnswerLog::new(load.code)? };
    let end = clock.now() + load.duration;
    for client in &mut clients {
        for _ in 0..load.window {
            run.ask(client, clock.now())?;
        }
        client.write(clock.now())?;
    }
    let mut events = Events::with_capacity(1024);
    loop {
        poll.poll(&mut events, Some(TICK))?;
        for event in &events {
            if let Some(client) = clients.get_mut(event.token().0) {
                run.turn(client, &clock, end)?;
            }
        }
        let now = clock.now();
        let open = || clients.iter().any(|client| client.connection.open_requests() > 0);
        if (now >= end || run.limit_reached()) && (!open() || now >= end + GRACE) {
            break;
        }
    }
    for client in &clients {
        run.answers.outcome.failed += client.connection.open_requests() as u64;
    }
    Ok(run.answers.outcome)
}

struct StreamClient {
    stream: TcpStream,
    connection: Connection,
    input: Input,
    began: StartTimes,
}

impl StreamClient {
    fn new(load: &BenchLoad, now: Instant) -> io::Result<Self> {
        let stream = std::net::TcpStream::connect(load.remote)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let config = Config { max_requests: load.window, ..Config::default() };
        Ok(Self {
            stream: TcpStream::from_std(stream),
            connection: Connection::new(now, Framing::Stream, config),
            input: Input::default(),
            began: StartTimes::default(),
        })
    }

    /// Writes the waiting bytes as far as there is room.
    fn write(&mut self, now: Instant) -> io::Result<()> {
        while !self.connection.poll_transmit().is_empty() {
            match self.stream.write(self.connection.poll_transmit()) {
                Ok(len) => self.connection.handle_transmitted(now, len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct StreamRun<'l> {
    load: &'l BenchLoad,
    content: Content<'l>,
    asked: u64,
    answers: AnswerLog,
}

impl StreamRun<'_> {
    fn limit_reached(&self) -> bool {
        self.load.requests.is_some_and(|limit| self.asked >= limit)
    }

    fn ask(&mut self, client: &mut StreamClient, now: Instant) -> io::Result<()> {
        if self.limit_reached() {
            return Ok(());
        }
        self.asked += 1;
        let request = client.connection.request(now, &self.content).map_err(io::Error::other)?;
        client.began.note(request.index(), now);
        Ok(())
    }

    /// Reads and writes until the socket has nothing more to read and accepts nothing more.
    fn turn(
        &mut self,
        client: &mut StreamClient,
        clock: &LoadClock,
        end: Instant,
    ) -> io::Result<()> {
        loop {
            let room = client.input.room(client.connection.expects());
            let all = room.len();
            let len = match client.stream.read(room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return client.write(clock.now());
                }
                Err(error) => return Err(error),
            };
            client.input.filled(len);
            let now = clock.now();
            let answered = self.take(client, now);
            if now < end {
                for _ in 0..answered {
                    self.ask(client, now)?;
                }
            }
            client.write(now)?;
            while let Some(event) = client.connection.poll_event() {
                match event {
                    Event::Failed { .. } => self.answers.outcome.failed += 1,
                    Event::Closed(closed) => return Err(io::Error::other(closed)),
                    _ => {}
                }
            }
            if len < all {
                return Ok(());
            }
        }
    }

    /// Processes the available answers and returns their number.
    fn take(&mut self, client: &mut StreamClient, now: Instant) -> u32 {
        let mut answered = 0;
        while let Some(taken) = client.connection.handle_input(now, client.input.unread()) {
            if let Received::Response { request, message } = taken.received {
                self.answers.validate(message.code(), message.payload());
                self.answers.record(client.began.start_of(request.index(), now), now);
                answered += 1;
            }
            client.input.take(taken.bytes);
        }
        answered
    }
}
