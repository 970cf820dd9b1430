//! The part of a transfer that a request with the options of RFC 9177 carries.

use crate::q_block::QBlockParameters;
use crate::session::message::Response;
use crate::wire::{Block, Code, Message, OptionNumber};
use alloc::vec::Vec;

/// A block of a body, or a request for blocks of one.
#[derive(Debug)]
pub(in crate::session) enum QBlockPart {
    /// A block of the request's body (RFC 9177 section 4.3).
    Block(BodyBlock),
    /// Blocks of the response's body (section 4.4).
    Request(BlockRequest),
}

/// A block of a request's body.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct BodyBlock {
    pub(in crate::session) block: Block,
    /// The length of the whole body in bytes.
    pub(in crate::session) size: usize,
}

/// The requested blocks of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct BlockRequest {
    pub(in crate::session) szx: u8,
    pub(in crate::session) blocks: RequestedBlocks,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) enum RequestedBlocks {
    /// All blocks.
    Whole,
    /// The blocks from this one on: the sets before it have arrived.
    From(u32),
    /// These blocks, in ascending order, at most a set.
    These(Vec<u32>),
}

impl QBlockPart {
    /// Reads the options, or returns the answer if they are not valid.
    pub(in crate::session) fn read(
        message: &Message<'_>,
        params: &QBlockParameters,
    ) -> Result<Self, Response> {
        let has = |number| message.option(number).is_some();
        if has(OptionNumber::BLOCK1) || has(OptionNumber::BLOCK2) {
            // Section 4.1.
            return Err(Response::error(Code::BAD_OPTION, "Block and Q-Block together"));
        }
        // A request for blocks of a response has no body (section 4.7); libcoap leaves Q-Block1 in
        // it.
        let asks = has(OptionNumber::Q_BLOCK2) && message.payload().is_empty();
        let Some(option) = message.option(OptionNumber::Q_BLOCK1).filter(|_| !asks) else {
            return BlockRequest::read(message, params).map(Self::Request).map_err(bad);
        };
        let block = Block::from_option(&option).map_err(|_| bad("Q-Block1 has no meaning"))?;
        let size = message.option(OptionNumber::SIZE1).and_then(|opt| opt.as_uint());
        let Some(size) = size.filter(|_| has(OptionNumber::REQUEST_TAG)) else {
            // Section 4.3.
            return Err(bad("Q-Block1 without Request-Tag or Size1"));
        };
        let size = size as usize;
        let (start, payload) = (block.offset() as usize, message.payload().len());
        let end = (start + block.size()).min(size);
        if start + payload != end || block.more() != (end < size) {
            return Err(bad("a block is not as long as it says"));
        }
        Ok(Self::Block(BodyBlock { block, size }))
    }
}

impl BlockRequest {
    fn read(message: &Message<'_>, params: &QBlockParameters) -> Result<Self, &'static str> {
        let options = message.options().filter(|opt| opt.number == OptionNumber::Q_BLOCK2);
        let mut blocks = Vec::new();
        let (mut szx, mut least) = (None, 0);
        let mut first = None;
        for (count, option) in options.enumerate() {
            let block = Block::from_option(&option).map_err(|_| "Q-Block2 has no meaning")?;
            if count > 0 && block.num() < least || szx.is_some_and(|szx| szx != block.szx()) {
                return Err("blocks that do not ascend, or of several sizes");
            }
            (szx, least) = (Some(block.szx()), block.num() + 1);
            first = (count == 0).then_some(block);
            let end = if block.more() { params.end_of_set(block.num()) } else { least };
            let after = blocks.last().map_or(0, |last| last + 1).max(block.num());
            blocks.extend((after..end).take(params.set() as usize - blocks.len()));
        }
        let szx = szx.ok_or("no block")?;
        let wanted = match first.filter(|block| block.more()) {
            Some(block) if block.num() == 0 => RequestedBlocks::Whole,
            Some(block) if block.num().is_multiple_of(params.set()) => {
                RequestedBlocks::From(block.num())
            }
            _ => RequestedBlocks::These(blocks),
        };
        Ok(Self { szx, blocks: wanted })
    }
}

fn bad(why: &'static str) -> Response {
    Response::error(Code::BAD_REQUEST, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Content, MessageId, Opt, Token, Type};
    use alloc::vec;

    fn read(options: &[(OptionNumber, &[u8])], payload: &[u8]) -> Result<QBlockPart, Code> {
        let options: Vec<Opt<'_>> =
            options.iter().map(|&(number, value)| Opt { number, value }).collect();
        let content = Content { code: Code::PUT, options: &options, payload };
        let mut bytes = [0; 200];
        let encoded =
            content.encode(&mut bytes, Type::NonConfirmable, MessageId(1), Token::EMPTY).unwrap();
        let message = Message::parse(&bytes[..encoded.len]).unwrap();
        QBlockPart::read(&message, &QBlockParameters::DEFAULT).map_err(|response| response.code())
    }

    fn requested(values: &[u32]) -> Option<RequestedBlocks> {
        let values: Vec<[u8; 3]> = values
            .iter()
            .map(|value| {
                let [_, a, b, c] = value.to_be_bytes();
                [a, b, c]
            })
            .collect();
        let options: Vec<(OptionNumber, &[u8])> =
            values.iter().map(|value| (OptionNumber::Q_BLOCK2, value.as_slice())).collect();
        match read(&options, b"") {
            Ok(QBlockPart::Request(request)) => Some(request.blocks),
            _ => None,
        }
    }

    const MORE: u32 = 8;

    #[test]
    fn the_bit_for_more_means_the_rest_of_a_set_a_whole_body_or_to_continue() {
        assert_eq!(requested(&[MORE]), Some(RequestedBlocks::Whole));
        assert_eq!(requested(&[0]), Some(RequestedBlocks::These(vec![0])));
        assert_eq!(requested(&[20 << 4 | MORE]), Some(RequestedBlocks::From(20)));
        assert_eq!(requested(&[17 << 4 | MORE]), Some(RequestedBlocks::These(vec![17, 18, 19])));
        assert_eq!(requested(&[1 << 4, 9 << 4]), Some(RequestedBlocks::These(vec![1, 9])));
        // Overlapping ranges: each block once (RFC 9177 section 4.4).
        assert_eq!(
            requested(&[17 << 4 | MORE, 18 << 4]),
            Some(RequestedBlocks::These(vec![17, 18, 19]))
        );
    }

    #[test]
    fn blocks_must_ascend_and_be_of_one_size() {
        for values in [[5 << 4, 5 << 4], [5 << 4, 4 << 4], [5 << 4, 6 << 4 | 1], [5 << 4, 7]] {
            assert_eq!(requested(&values), None, "{values:?}");
        }
    }

    #[test]
    fn a_block_needs_its_tag_its_size_and_as_many_bytes_as_it_says() {
        let tag = (OptionNumber::REQUEST_TAG, &[1][..]);
        let size = (OptionNumber::SIZE1, &[40][..]);
        let block = |value: &'static [u8]| (OptionNumber::Q_BLOCK1, value);
        assert!(matches!(
            read(&[block(&[0x18]), size, tag], &[0; 16]),
            Ok(QBlockPart::Block(BodyBlock { size: 40, block })) if block.num() == 1 && block.more()
        ));
        assert!(read(&[block(&[0x20]), size, tag], &[0; 8]).is_ok());
        let asks = [block(&[0x08]), (OptionNumber::Q_BLOCK2, &[0xa8][..]), size, tag];
        assert!(
            matches!(read(&asks, &[]), Ok(QBlockPart::Request(_))),
            "what libcoap's client asks with"
        );
        for (options, payload) in [
            (vec![block(&[0x18]), size], &[0; 16][..]),
            (vec![block(&[0x18]), tag], &[0; 16]),
            (vec![block(&[0x18]), size, tag], &[0; 15]),
            (vec![block(&[0x10]), size, tag], &[0; 16]),
            (vec![block(&[0x28]), size, tag], &[0; 8]),
            (vec![block(&[0x38]), size, tag], &[0; 16]),
            (vec![block(&[0x1f]), size, tag], &[0; 16]),
        ] {
            assert_eq!(read(&options, payload).err(), Some(Code::BAD_REQUEST), "{options:?}");
        }
        let mixed = [block(&[0x18]), (OptionNumber::BLOCK1, &[8][..]), size, tag];
        assert_eq!(read(&mixed, &[0; 16]).err(), Some(Code::BAD_OPTION));
    }
}
