//! What requests and responses say: each body tells whose it is, and every byte of it.

/// A number that says nothing about its neighbours.
pub(crate) fn mix(n: u32) -> u32 {
    let n = (n ^ (n >> 16)).wrapping_mul(0x7feb_352d);
    let n = (n ^ (n >> 15)).wrapping_mul(0x846c_a68b);
    n ^ (n >> 16)
}

/// A body of a number: the number itself, and bytes that follow from it and from their place.
pub(crate) fn pattern(number: u32, length: usize) -> Vec<u8> {
    let key = mix(number);
    let rest = (4..length as u32).map(|at| mix(key ^ (at / 16)) as u8);
    number.to_be_bytes().into_iter().chain(rest).take(length).collect()
}

/// The number of a request's body.
pub(crate) fn number(body: &[u8]) -> Option<u32> {
    body.first_chunk::<4>().map(|first| u32::from_be_bytes(*first))
}

/// How long the body of a request is: one block, a block and a byte, many, too many.
pub(crate) fn request_length(number: u32) -> usize {
    [4, 4, 4, 30, 64, 65, 200, 700, 1600][mix(number) as usize % 9]
}

/// How long the body of its answer is.
pub(crate) fn answer_length(number: u32) -> usize {
    [0, 3, 4, 64, 65, 300, 900][(mix(number) >> 8) as usize % 7]
}

/// The body of its answer.
pub(crate) fn answer(number: u32) -> Vec<u8> {
    pattern(!number, answer_length(number))
}

/// The state of the resource that changes.
pub(crate) fn state(version: u8) -> Vec<u8> {
    vec![version; [10, 300, 130, 64][usize::from(version) % 4]]
}
