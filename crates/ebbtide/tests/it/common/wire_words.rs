//! The language of the scripts that say what the wire shows, for sockets of the system and for a network in memory.

const ECHO: u8 = 252;
const TYPES: [&str; 4] = ["con", "non", "ack", "rst"];

/// What the wire is to show.
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
}

/// The scripts of a file, in front of which its language is explained.
pub(crate) fn scripts(text: &str) -> Vec<Script> {
    let cases = text.split("\ncase ").skip(1).map(|case| {
        let mut lines = case.lines().map(str::to_owned);
        let name = lines.next().unwrap();
        let told = |line: &String| !line.is_empty() && !line.starts_with('#');
        Script { name, lines: lines.filter(told).collect() }
    });
    cases.collect()
}

/// What a script remembers of the messages that it received.
#[derive(Default)]
pub(crate) struct Remembered {
    id: [u8; 2],
    token: Vec<u8>,
    /// Those that were new once.
    ids: Vec<[u8; 2]>,
    tokens: Vec<Vec<u8>>,
    /// The value of an Echo option.
    echo: Vec<u8>,
    /// The last option that had to grow.
    number: u32,
}

impl Remembered {
    /// The bytes that the words stand for: hexadecimal digits, `'` and text, `con+` and others of
    /// the four types with the length of the token, `id` and `token` of the message before, a byte
    /// `ab*60` many times, and `echo/11` the option after one of that number.
    pub(crate) fn bytes(&self, words: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in words.split_whitespace() {
            if let Some(before) = word.strip_prefix("echo/") {
                // The delta is above 12, and at most 268, and so is the length of a long value.
                bytes.push(0xd0 | self.echo.len().min(13) as u8);
                bytes.push(ECHO - 13 - before.parse::<u8>().unwrap());
                bytes.extend(self.echo.len().checked_sub(13).map(|beyond| beyond as u8));
                bytes.extend(&self.echo);
                continue;
            }
            let kind =
                word.strip_suffix('+').and_then(|kind| TYPES.iter().position(|of| *of == kind));
            match (word, word.split_once('*'), kind) {
                (_, _, Some(kind)) => {
                    bytes.push(0x40 | (kind as u8) << 4 | self.token.len() as u8);
                }
                (_, Some((byte, times)), _) => {
                    let byte = u8::from_str_radix(byte, 16).unwrap();
                    bytes.extend(std::iter::repeat_n(byte, times.parse().unwrap()));
                }
                ("id", ..) => bytes.extend(self.id),
                ("token", ..) => bytes.extend(&self.token),
                _ => match word.strip_prefix('\'') {
                    Some(text) => bytes.extend(text.as_bytes()),
                    None => bytes.push(u8::from_str_radix(word, 16).unwrap()),
                },
            }
        }
        bytes
    }

    /// Whether a datagram is what the words say, which are as above; `..` is any byte and `..*8` eight of them, `*`
    /// any rest, and `new-id`, `new-token` and `new-echo` are remembered, and the first two were never there before.
    /// `number` is an option whose value is larger than that of the one before.
    pub(crate) fn matches(&mut self, words: &str, datagram: &[u8]) -> bool {
        let mut left = datagram;
        let mut token_len = usize::from(datagram[0] & 0xf);
        for word in words.split_whitespace() {
            let length = match word {
                "*" => return true,
                "new-id" => 2,
                "new-token" => token_len,
                "number" => 1 + left.first().map_or(0, |head| usize::from(head & 0xf)),
                "new-echo" => match *left {
                    [head, _, beyond, ..] if head & 0xf == 13 => 3 + 13 + usize::from(beyond),
                    [head, ..] => 2 + usize::from(head & 0xf),
                    [] => return false,
                },
                _ if word.starts_with("..") => {
                    word.strip_prefix("..*").map_or(1, |count| count.parse().unwrap())
                }
                _ => self.bytes(word).len(),
            };
            let Some((part, rest)) = left.split_at_checked(length) else { return false };
            match word {
                "new-id" if self.ids.iter().any(|id| id == part) => return false,
                "new-id" => {
                    self.id = part.try_into().unwrap();
                    self.ids.push(self.id);
                }
                "new-token" if self.tokens.iter().any(|token| token == part) => return false,
                "new-token" => {
                    self.token = part.to_vec();
                    self.tokens.push(self.token.clone());
                }
                "number" => {
                    let value =
                        part[1..].iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
                    if value <= self.number && self.number > 0 {
                        return false;
                    }
                    self.number = value;
                }
                "new-echo" if part[1] == ECHO - 13 => {
                    let begin = if part[0] & 0xf == 13 { 3 } else { 2 };
                    self.echo = part[begin..].to_vec();
                }
                "new-echo" => return false,
                _ if word.starts_with("..") => {}
                _ if word.ends_with('+') => {
                    // The length of the token is known only now.
                    token_len = usize::from(part[0] & 0xf);
                    if (self.bytes(word)[0] ^ part[0]) & 0xf0 != 0 {
                        return false;
                    }
                }
                _ if self.bytes(word) != part => return false,
                _ => {}
            }
            left = rest;
        }
        left.is_empty()
    }
}
