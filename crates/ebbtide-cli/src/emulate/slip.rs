//! A device at a serial line: IP packets in the frames of SLIP (RFC 1055), through a pseudo-terminal.

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const END: u8 = 0xC0;
const ESC: u8 = 0xDB;
const ESC_END: u8 = 0xDC;
const ESC_ESC: u8 = 0xDD;

/// Bytes of frames that wait until the device reads.
const MOST_WAITING: usize = 256 << 10;

/// Our end of a serial line, whose other end a device opens.
pub(crate) struct SerialLine {
    ours: File,
    /// A duplicate for the events of writing, which come once each time that the line takes bytes
    /// again.
    writable: File,
    /// Without an open end of the device, reads of ours fail.
    _device_end: File,
    path: PathBuf,
    decoder: Decoder,
    waiting: Vec<u8>,
    not_taken: u64,
}

impl SerialLine {
    /// Opens a line for packets of at most `mtu` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no pseudo-terminals left.
    pub(crate) fn open(mtu: u32) -> io::Result<Self> {
        // The programs that the emulator starts do not inherit either end: a device opens the path.
        // `openpty` would leave a moment in which they do.
        let ours =
            posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let path = PathBuf::from(ptsname_r(&ours)?);
        let mut options = OpenOptions::new();
        let no_terminal = OFlag::O_NOCTTY.bits();
        // Rust opens files with O_CLOEXEC.
        let device_end = options.read(true).write(true).custom_flags(no_terminal).open(&path)?;
        let mut settings = tcgetattr(&device_end)?;
        cfmakeraw(&mut settings);
        tcsetattr(&device_end, SetArg::TCSANOW, &settings)?;
        let ours = File::from(OwnedFd::from(ours));
        let writable = ours.try_clone()?;
        Ok(Self {
            ours,
            writable,
            _device_end: device_end,
            path,
            decoder: Decoder::new(mtu as usize),
            waiting: Vec::new(),
            not_taken: 0,
        })
    }

    /// The file that the device opens.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Registers reading with the token `first`, and writing with the next one.
    pub(crate) fn register(&self, epoll: &Epoll, first: u64) -> io::Result<()> {
        epoll.add(&self.ours, EpollEvent::new(EpollFlags::EPOLLIN, first))?;
        let flags = EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        Ok(epoll.add(&self.writable, EpollEvent::new(flags, first + 1))?)
    }

    /// Hands over the packets that the device has sent since, at most some, and continues to write.
    pub(crate) fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.write_waiting()?;
        let mut buffer = [0; 4096];
        let count = match self.ours.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for &byte in buffer.get(..count).unwrap_or_default() {
            if let Some(packet) = self.decoder.push(byte) {
                take(packet);
            }
        }
        Ok(())
    }

    /// Sends a packet to the device. It is dropped if the device leaves too much unread.
    pub(crate) fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.waiting.len() + 2 * packet.len() + 2 > MOST_WAITING {
            self.not_taken += 1;
            return Ok(());
        }
        encode(packet, &mut self.waiting);
        self.write_waiting()
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            match self.ours.write(&self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Messages about packets that were left out.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.decoder.too_long > 0 {
            let (count, limit) = (self.decoder.too_long, self.decoder.limit);
            remarks.push(format!(
                "{count} SLIP frames were longer than the MTU of {limit} bytes and were dropped"
            ));
        }
        if self.not_taken > 0 {
            remarks.push(format!(
                "{} packets were dropped because the device at {} did not read",
                self.not_taken,
                self.path.display()
            ));
        }
        remarks
    }
}

/// Appends a frame. It begins with END as well, which ends what noise on the line may have begun
/// (RFC 1055, "Protocol").
fn encode(packet: &[u8], to: &mut Vec<u8>) {
    to.push(END);
    for &byte in packet {
        match byte {
            END => to.extend([ESC, ESC_END]),
            ESC => to.extend([ESC, ESC_ESC]),
            _ => to.push(byte),
        }
    }
    to.push(END);
}

/// The frames of a stream of bytes.
struct Decoder {
    frame: Vec<u8>,
    state: State,
    limit: usize,
    too_long: u64,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    Plain,
    Escaped,
    /// Within a frame that is too long.
    Skipping,
    /// The frame is complete, and goes when the next byte comes.
    Ended,
}

impl Decoder {
    fn new(limit: usize) -> Self {
        Self { frame: Vec::new(), state: State::Plain, limit, too_long: 0 }
    }

    /// Takes a byte, and returns the packet that it ends. Empty frames are ignored.
    fn push(&mut self, byte: u8) -> Option<&[u8]> {
        if self.state == State::Ended {
            self.frame.clear();
            self.state = State::Plain;
        }
        match (self.state, byte) {
            (State::Skipping, END) => self.state = State::Ended,
            (State::Skipping, _) => {}
            (_, END) => {
                self.state = State::Ended;
                return Some(self.frame.as_slice()).filter(|frame| !frame.is_empty());
            }
            (State::Plain, ESC) => self.state = State::Escaped,
            (state, _) => {
                self.state = State::Plain;
                // Of another byte after ESC, RFC 1055 says that it is best left as it is.
                let byte = match (state, byte) {
                    (State::Escaped, ESC_END) => END,
                    (State::Escaped, ESC_ESC) => ESC,
                    _ => byte,
                };
                if self.frame.len() == self.limit {
                    self.too_long += 1;
                    self.state = State::Skipping;
                } else {
                    self.frame.push(byte);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn frames(decoder: &mut Decoder, bytes: &[u8]) -> Vec<Vec<u8>> {
        bytes.iter().filter_map(|&byte| decoder.push(byte).map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn a_packet_with_special_bytes_arrives_as_it_was_sent() {
        let packet = [0x45, END, ESC, ESC_END, ESC_ESC, 0];
        let mut line = Vec::new();
        encode(&packet, &mut line);
        assert_eq!(
            line,
            [END, 0x45, ESC, ESC_END, ESC, ESC_ESC, ESC_END, ESC_ESC, 0, END],
            "RFC 1055"
        );
        assert_eq!(frames(&mut Decoder::new(6), &line), [packet.to_vec()]);
    }

    #[test]
    fn a_frame_beyond_the_mtu_is_dropped_and_the_next_one_arrives() {
        let mut decoder = Decoder::new(3);
        let line = [1, 2, 3, 4, 5, END, 6, END, END, ESC, 7, END, 8];
        assert_eq!(frames(&mut decoder, &line), [vec![6], vec![7]]);
        assert_eq!(decoder.too_long, 1);
        assert_eq!(frames(&mut decoder, &[9, END]), [vec![8, 9]], "a frame may come in pieces");
    }

    #[test]
    fn programs_that_the_emulator_starts_inherit_no_end_of_the_line() {
        let line = SerialLine::open(1280).unwrap();
        let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("-> "), "{listed}");
        let ends = ["ptmx", line.path().to_str().unwrap()];
        for name in listed.lines().filter_map(|file| file.rsplit("-> ").next()) {
            assert!(!ends.iter().any(|end| name.ends_with(end)), "{listed}");
        }
    }

    #[test]
    fn what_a_device_does_not_read_is_bounded() {
        let mut line = SerialLine::open(1280).unwrap();
        assert!(line.path().exists());
        for _ in 0..1000 {
            line.send(&[1; 1280]).unwrap();
        }
        assert!(line.waiting.len() <= MOST_WAITING);
        assert!(line.not_taken > 0);
        assert!(line.remarks()[0].contains("did not read"), "{:?}", line.remarks());
    }
}
