//! How much a server sends to an address that may be forged (RFC 9175 section 2.4).

/// Bytes of IPv4 and UDP headers, which count on both sides of an amplification. IPv6 headers are
/// longer on both sides, so the ratio is smaller there.
pub(crate) const HEADERS: usize = 28;
/// The maximum ratio of the bytes of all responses to those of a request that is not proved (RFC 9175
/// section 2.4: "anti-amplification").
const FACTOR: usize = 3;

/// How many datagrams of `length` bytes may be sent in answer to a request of `request` bytes that is not
/// proved, after `sent` bytes with their headers.
pub(crate) fn allowance(request: usize, sent: usize, length: usize) -> u8 {
    let times = (FACTOR * (request + HEADERS)).saturating_sub(sent) / (length + HEADERS);
    u8::try_from(times).unwrap_or(u8::MAX)
}

/// Whether a message of at most `bound` bytes is within the limit for every request of
/// this length.
pub(crate) fn is_short(request: usize, bound: usize) -> bool {
    bound + HEADERS <= FACTOR * (request + HEADERS)
}

/// The longest datagram that may answer a request that is not proved.
pub(crate) const fn longest(request: usize) -> usize {
    FACTOR * (request + HEADERS) - HEADERS
}

#[cfg(test)]
mod tests {
    use super::{allowance, longest};

    #[test]
    fn a_request_that_is_not_proved_yields_three_times_its_bytes() {
        assert_eq!(allowance(20, 0, 116), 1, "headers included");
        assert_eq!(allowance(20, 0, 117), 0);
        assert_eq!(allowance(20, 32, 26), 2, "less what was sent before");
        assert_eq!(longest(20), 116);
    }
}
