//! The end of a certificate's validity, read from its DER (RFC 5280 section 4.1).

const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The instant after which a certificate is not valid, in seconds since 1970. `None` if it is not a certificate.
pub(super) fn not_after(certificate: &[u8]) -> Option<u64> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&EXPLICIT_VERSION) {
        fields = any(fields)?.2;
    }
    // The serial number, the algorithm of the signature, the issuer.
    for _ in 0..3 {
        fields = any(fields)?.2;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, _, not_after) = any(validity)?;
    let (kind, time, _) = any(not_after)?;
    seconds(kind, time)
}

/// The contents of an element with this tag, and what follows it.
fn element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = any(input)?;
    (found == tag).then_some((contents, rest))
}

/// The tag and contents of an element, and what follows it.
fn any(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = input.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (sections 4.1.2.5.1 and 4.1.2.5.2).
fn seconds(kind: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |from: usize, len: usize| -> Option<u64> {
        let text = core::str::from_utf8(digits.get(from..from + len)?).ok()?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    let (year, at) = match kind {
        UTC_TIME => {
            (number(0, 2).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2)
        }
        GENERALIZED_TIME => (number(0, 4)?, 4),
        _ => return None,
    };
    let (month, day) = (number(at, 2)?, number(at + 2, 2)?);
    let (hour, minute, second) = (number(at + 4, 2)?, number(at + 6, 2)?, number(at + 8, 2)?);
    // Days since 1970 of the Gregorian calendar, with years that begin in March.
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100
        + year / 400
        + (153 * month + 2) / 5
        + day.checked_sub(1)?;
    Some(((days.checked_sub(719_468)? * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_read_to_the_second() {
        for (time, expected) in [
            (rcgen::date_time_ymd(2031, 2, 28), 1_930_003_200),
            (rcgen::date_time_ymd(2024, 2, 29), 1_709_164_800),
            (rcgen::date_time_ymd(2061, 12, 31), 2_903_212_800),
        ] {
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_after = time;
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            assert_eq!(not_after(certificate.der()), Some(expected));
            for end in 0..40 {
                assert_eq!(not_after(&certificate.der()[..end]), None);
            }
        }
    }
}
