//! Responses on the command line: their formats, and which of them are errors.

use crate::failure::Failure;
use ebbtide::{ContentFormat, Response};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Parses a Content-Format.
pub(crate) fn format(text: &str) -> Result<ContentFormat, String> {
    ContentFormat::parse(text).ok_or_else(|| {
        let names: Vec<_> = ContentFormat::names().filter(|name| !name.contains('/')).collect();
        format!("no format '{text}': a number, a media type, or one of {}", names.join(", "))
    })
}

/// Writes a payload to a file, or to standard output for `-`.
pub(crate) fn write(response: &Response, path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        return Ok(out.write_all(response.body()).and_then(|()| out.flush())?);
    }
    fs::write(path, response.body())
        .map_err(|error| Failure::work(format_args!("--output {}: {error}", path.display())))
}

/// The error for an error response, with its diagnostic payload (RFC 7252 section 5.5.2).
pub(crate) fn succeeded(response: &Response) -> Result<(), Failure> {
    if response.is_success() {
        return Ok(());
    }
    let (status, why) = (status(response), crate::client::pretty::readable(response));
    let separator = if why.is_empty() { "" } else { ": " };
    let later = response.retry_after().map(|span| format!(" (retry after {} s)", span.as_secs()));
    let later = later.unwrap_or_default();
    Err(Failure::work(format_args!("{status}{later}{separator}{}", why.trim_end())))
}

pub(crate) fn status(response: &Response) -> String {
    format!("{} {}", response.code(), response.code().name().unwrap_or("unknown code"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide::Code;

    #[test]
    fn a_server_that_is_busy_is_shown_with_the_time_after_which_it_may_be_asked_again() {
        let busy = Response::new(Code::TOO_MANY_REQUESTS).max_age(7);
        let expected = "4.29 Too Many Requests (retry after 7 s)";
        assert!(matches!(succeeded(&busy), Err(Failure::Work(shown)) if shown == expected));
    }
}
