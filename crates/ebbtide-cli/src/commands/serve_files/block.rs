//! One block of a long body (RFC 7959), read when it is asked for: no body is kept.

use bytes::Bytes;
use ebbtide::core::wire::{Block, Message, OptionNumber, encode_uint};
use ebbtide::{Code, Response};
use std::io;

/// Answers with the block that is asked for, the first if none is (RFC 7959 section 2.4).
pub(super) fn one_block(
    message: &Message<'_>,
    response: Response,
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Response> {
    let wanted = match message.option(OptionNumber::BLOCK2) {
        None => Block::new(0, false, Block::MAX_SZX),
        Some(opt) => Block::from_option(&opt),
    };
    let Ok(wanted) = wanted else { return Ok(Response::new(Code::BAD_REQUEST)) };
    let start = u64::from(wanted.num()) * wanted.size() as u64;
    if start >= length.max(1) {
        return Ok(Response::error(Code::BAD_REQUEST, "no such block"));
    }
    if length > (u64::from(Block::MAX_NUM) + 1) * wanted.size() as u64 {
        let text = format!("the file is longer than all blocks of {} bytes", wanted.size());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut block = [0; 1 << (4 + Block::MAX_SZX)];
    let room = &mut block[..wanted.size()];
    let mut filled = 0;
    while filled < room.len() {
        match read_at(&mut room[filled..], start + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    let mut response = response.payload(Bytes::copy_from_slice(&room[..filled]));
    let more = start + (filled as u64) < length;
    if more || wanted.num() > 0 {
        let option = Block::new(wanted.num(), more, wanted.szx()).map(Block::to_uint);
        let option = option.map_err(|_| io::ErrorKind::InvalidInput)?;
        response = response.option(OptionNumber::BLOCK2, encode_uint(option, &mut [0; 4]));
        if wanted.num() == 0 {
            let size = u32::try_from(length).unwrap_or(u32::MAX);
            response = response.option(OptionNumber::SIZE2, encode_uint(size, &mut [0; 4]));
        }
    }
    Ok(response)
}
