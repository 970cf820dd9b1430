//! Which options pass through (RFC 7252 sections 5.4.2 and 5.7.1, RFC 8768).

use ebbtide::{Options, Response};
use ebbtide_core::wire::{Code, Message, Opt, OptionNumber};

/// The Hop-Limit of a request that has none (RFC 8768 section 3: "the default value is 16").
pub(crate) const HOPS: u8 = 16;
/// The maximum length of a diagnostic that names the proxies of a loop.
const MAX_TRACE: usize = 512;

/// The options of a request to be forwarded.
#[derive(Clone, Debug)]
pub(crate) struct Forwarded {
    pub(crate) options: Options,
    /// The number of further hops.
    pub(crate) hop_limit: u8,
}

impl Forwarded {
    /// The options of a request that pass through.
    ///
    /// # Errors
    ///
    /// The answer, if the request must not be forwarded.
    pub(crate) fn of_request(message: &Message<'_>, name: &str) -> Result<Self, Response> {
        let mut options = Options::new();
        let mut hop_limit = HOPS;
        for opt in message.options() {
            match opt.number {
                OptionNumber::HOP_LIMIT => {
                    // RFC 8768 section 3: 0 is a 4.00; at 1 this proxy is the last one.
                    let hops = opt.as_uint().and_then(|hops| u8::try_from(hops).ok());
                    let Some(hops) = hops.filter(|hops| *hops > 0) else {
                        return Err(Response::error(Code::BAD_REQUEST, "Hop-Limit is 0"));
                    };
                    hop_limit = hops - 1;
                }
                number if is_of_hop(number) => {}
                number if passes(number) => options.push(number, opt.value),
                // RFC 7252 section 5.7.1: "Unsafe options in a request that are not recognized by the proxy MUST
                // lead to a 4.02 (Bad Option) response".
                number => {
                    let why = format!("{number} is not forwarded");
                    return Err(Response::error(Code::BAD_OPTION, why));
                }
            }
        }
        if hop_limit == 0 {
            return Err(Response::error(Code::HOP_LIMIT_REACHED, name.to_owned()));
        }
        Ok(Self { options, hop_limit })
    }

    /// The options that pass through, and Hop-Limit.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = Opt<'_>> {
        let value = core::slice::from_ref(&self.hop_limit);
        self.options.iter().chain([Opt { number: OptionNumber::HOP_LIMIT, value }])
    }
}

/// Whether an option concerns one hop, or is part of the URI: the library sets those of each hop itself.
fn is_of_hop(number: OptionNumber) -> bool {
    matches!(
        number,
        OptionNumber::URI_HOST
            | OptionNumber::URI_PORT
            | OptionNumber::URI_PATH
            | OptionNumber::URI_QUERY
            | OptionNumber::PROXY_URI
            | OptionNumber::PROXY_SCHEME
            | OptionNumber::OBSERVE
            | OptionNumber::BLOCK1
            | OptionNumber::BLOCK2
            | OptionNumber::Q_BLOCK1
            | OptionNumber::Q_BLOCK2
            | OptionNumber::SIZE1
            | OptionNumber::SIZE2
            | OptionNumber::ECHO
            | OptionNumber::REQUEST_TAG
            | OptionNumber::NO_RESPONSE
            | OptionNumber::HOP_LIMIT
    )
}

/// Whether an option passes through: it is safe to forward, or this proxy knows what it means.
fn passes(number: OptionNumber) -> bool {
    !number.is_unsafe_to_forward() || matches!(number, OptionNumber::MAX_AGE)
}

/// The server's response as the client receives it.
pub(crate) fn of_response(response: Response, name: &str) -> Response {
    let code = response.code();
    let mut forwarded = Response::new(code);
    for opt in response.options().iter() {
        if is_of_hop(opt.number) {
            continue;
        }
        if !passes(opt.number) {
            // RFC 7252 section 5.7.1: "Unsafe options in a response that are not recognized by the proxy server MUST
            // lead to a 5.02 (Bad Gateway) response."
            return Response::error(Code::BAD_GATEWAY, format!("{} is not forwarded", opt.number));
        }
        forwarded = forwarded.option(opt.number, opt.value);
    }
    let body = response.into_body();
    if code == Code::HOP_LIMIT_REACHED && body.len() + name.len() < MAX_TRACE {
        // RFC 8768 section 4: each proxy prepends its name.
        return forwarded.payload([name.as_bytes(), b" ", &body].concat());
    }
    forwarded.payload(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::get_with;

    fn forwarded(options: &[(OptionNumber, &[u8])]) -> Result<Forwarded, Response> {
        let request = get_with(options);
        Forwarded::of_request(&Message::parse(&request).unwrap(), "here")
    }

    #[test]
    fn what_is_safe_passes_and_what_is_unsafe_and_unknown_is_refused() {
        let passed = forwarded(&[
            (OptionNumber::ETAG, b"e"),
            (OptionNumber::OBSERVE, b""),
            (OptionNumber::URI_PATH, b"a"),
            (OptionNumber::ACCEPT, &[50]),
            (OptionNumber::BLOCK2, &[2]),
            // Elective and safe, and critical and safe.
            (OptionNumber(65000), b"x"),
            (OptionNumber(65001), b"y"),
        ]);
        let numbers: Vec<_> = passed.unwrap().options.iter().map(|opt| opt.number.0).collect();
        assert_eq!(numbers, [4, 17, 65000, 65001]);
        let refused = forwarded(&[(OptionNumber(65002), b"z")]).unwrap_err();
        assert_eq!(refused.code(), Code::BAD_OPTION);
    }

    #[test]
    fn the_hop_limit_counts_down_and_ends_a_loop() {
        assert_eq!(forwarded(&[]).unwrap().hop_limit, 16);
        assert_eq!(forwarded(&[(OptionNumber::HOP_LIMIT, &[16])]).unwrap().hop_limit, 15);
        let ended = forwarded(&[(OptionNumber::HOP_LIMIT, &[1])]).unwrap_err();
        assert_eq!((ended.code(), ended.text().as_ref()), (Code::HOP_LIMIT_REACHED, "here"));
        assert_eq!(
            forwarded(&[(OptionNumber::HOP_LIMIT, &[0])]).unwrap_err().code(),
            Code::BAD_REQUEST
        );
        let relayed = of_response(ended, "before");
        assert_eq!(relayed.text(), "before here");
    }

    #[test]
    fn a_response_loses_the_options_of_its_hop_and_one_with_an_unsafe_option_is_a_bad_gateway() {
        let response = Response::content("x").etag(b"e").option(OptionNumber::OBSERVE, &[5]);
        let passed = of_response(response, "here");
        assert!(passed.options().iter().map(|opt| opt.number).eq([OptionNumber::ETAG]));
        let response = Response::content("x").option(OptionNumber(65002), b"z");
        assert_eq!(of_response(response, "here").code(), Code::BAD_GATEWAY);
    }
}
