//! Values in OMA's TLV (LwM2M 1.1 Core, section 7.4.3), the form of several resources that LwM2M 1.0 knows.

use ebbtide::ContentFormat;

/// `application/vnd.oma.lwm2m+tlv`.
pub const TLV: ContentFormat = ContentFormat(11542);

/// A resource with its value.
const RESOURCE: u8 = 0b11;
/// A resource whose value is its instances.
const MULTIPLE: u8 = 0b10;
/// An instance of a resource, with its value.
const RESOURCE_INSTANCE: u8 = 0b01;
/// An object instance, whose value is its resources.
const INSTANCE: u8 = 0b00;

/// The type of a resource, which its object's definition states: TLV does not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A signed integer.
    Integer,
    /// A resource with several integers, of which this example has instance 0 alone.
    Integers,
    /// A floating-point number.
    Float,
    /// A text.
    Text,
}

/// Appends a resource; a value that is not of its type is written as text.
pub fn write(out: &mut Vec<u8>, id: u16, kind: Type, value: &str) {
    match (kind, value.parse::<i64>(), value.parse::<f64>()) {
        (Type::Integer, Ok(number), _) => entry(out, RESOURCE, id, integer(number)),
        (Type::Integers, Ok(number), _) => {
            let mut instances = Vec::new();
            entry(&mut instances, RESOURCE_INSTANCE, 0, integer(number));
            entry(out, MULTIPLE, id, instances);
        }
        (Type::Float, _, Ok(number)) => entry(out, RESOURCE, id, number.to_be_bytes()),
        _ => entry(out, RESOURCE, id, value.as_bytes()),
    }
}

/// An integer in 1, 2, 4 or 8 bytes.
fn integer(number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let fits = |length: &usize| {
        let spare = 64 - 8 * *length as u32;
        number << spare >> spare == number
    };
    let length = [1, 2, 4].into_iter().find(fits).unwrap_or(8);
    bytes[8 - length..].to_vec()
}

fn entry(out: &mut Vec<u8>, kind: u8, id: u16, value: impl AsRef<[u8]>) {
    let value = value.as_ref();
    let length = (value.len() as u32).to_be_bytes();
    let (size, length) = match value.len() {
        0..8 => (value.len() as u8, &length[4..]),
        8..0x100 => (1 << 3, &length[3..]),
        0x100..0x1_0000 => (2 << 3, &length[2..]),
        _ => (3 << 3, &length[1..]),
    };
    let [high, low] = id.to_be_bytes();
    match high {
        0 => out.extend([kind << 6 | size, low]),
        _ => out.extend([kind << 6 | 1 << 5 | size, high, low]),
    }
    out.extend_from_slice(length);
    out.extend_from_slice(value);
}

/// A resource that was read; its bytes are of the type that its object states.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// Its number.
    pub id: u16,
    /// Its value.
    pub value: &'t [u8],
}

impl Entry<'_> {
    /// The value as text, if its bytes are of this type.
    #[must_use]
    pub fn text(&self, kind: Type) -> Option<String> {
        match (kind, self.value) {
            (Type::Text, text) => String::from_utf8(text.to_vec()).ok(),
            (Type::Integer, &[first, ref rest @ ..]) if [0, 1, 3, 7].contains(&rest.len()) => {
                let begin = i64::from(first.cast_signed());
                let number = rest.iter().fold(begin, |number, byte| number << 8 | i64::from(*byte));
                Some(number.to_string())
            }
            (Type::Float, bytes) => match (bytes.try_into(), bytes.try_into()) {
                (Ok(bytes), _) => Some(f64::from_be_bytes(bytes).to_string()),
                (_, Ok(bytes)) => Some(f32::from_be_bytes(bytes).to_string()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Reads the resources of one instance, alone or within its entry. `None` if the bytes are malformed, or of several
/// instances or values.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    match next(bytes) {
        Some((INSTANCE, instance, [])) => resources(instance.value),
        _ => resources(bytes),
    }
}

/// Nothing else: an instance within an instance is malformed (section 7.4.3).
fn resources(mut bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (RESOURCE, entry, rest) = next(bytes)? else { return None };
        found.push(entry);
        bytes = rest;
    }
    Some(found)
}

/// The kind of the first entry, the entry, and the bytes after it.
fn next(bytes: &[u8]) -> Option<(u8, Entry<'_>, &[u8])> {
    let (&head, rest) = bytes.split_first()?;
    let (id, rest) = number(rest, if head & 1 << 5 == 0 { 1 } else { 2 })?;
    let (length, rest) = match usize::from(head >> 3 & 3) {
        0 => (u32::from(head & 7), rest),
        bytes => number(rest, bytes)?,
    };
    let (value, rest) = rest.split_at_checked(length as usize)?;
    Some((head >> 6, Entry { id: id as u16, value }, rest))
}

fn number(bytes: &[u8], length: usize) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_at_checked(length)?;
    Some((number.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)), rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is how it fails")]
mod tests {
    use super::*;

    /// Resources of the example of section 7.4.3.1, "Request to Read Device Object Instance".
    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let mut out = Vec::new();
        write(&mut out, 0, Type::Text, "Open Mobile Alliance");
        write(&mut out, 1, Type::Text, "Lightweight M2M Client");
        write(&mut out, 3, Type::Text, "1.0");
        write(&mut out, 9, Type::Integer, "100");
        write(&mut out, 13, Type::Integer, "1367491215");
        let mut errors = Vec::new();
        write(&mut errors, 11, Type::Integers, "0");
        assert_eq!(errors, b"\x83\x0b\x41\x00\x00");
        let expected: &[&[u8]] = &[
            b"\xc8\x00\x14Open Mobile Alliance",
            b"\xc8\x01\x16Lightweight M2M Client",
            b"\xc3\x031.0",
            b"\xc1\x09\x64",
            b"\xc4\x0d\x51\x82\x42\x8f",
        ];
        assert_eq!(out, expected.concat());
        let read = read(&out).unwrap();
        let types = [Type::Text, Type::Text, Type::Text, Type::Integer, Type::Integer];
        let texts: Vec<_> =
            read.iter().zip(types).map(|(entry, kind)| entry.text(kind).unwrap()).collect();
        assert_eq!(texts[1..], ["Lightweight M2M Client", "1.0", "100", "1367491215"]);
    }

    #[test]
    fn every_length_and_number_is_read_as_it_was_written() {
        for length in [0, 7, 8, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(length);
            let mut out = Vec::new();
            write(&mut out, 5700, Type::Text, &text);
            assert_eq!(read(&out), Some(vec![Entry { id: 5700, value: text.as_bytes() }]));
            assert!((1..out.len()).all(|short| read(&out[..short]).is_none()), "{length}");
        }
        for number in [0, -1, 127, -128, 128, 32_768, -32_769, 1 << 31, i64::MIN] {
            let mut out = Vec::new();
            write(&mut out, 1, Type::Integer, &number.to_string());
            let text = read(&out).unwrap()[0].text(Type::Integer);
            assert_eq!(text, Some(number.to_string()));
        }
        let mut out = Vec::new();
        write(&mut out, 1, Type::Float, "-21.5");
        assert_eq!(read(&out).unwrap()[0].text(Type::Float).as_deref(), Some("-21.5"));
        assert_eq!(
            Entry { id: 1, value: &[0x41, 0xac, 0, 0] }.text(Type::Float).as_deref(),
            Some("21.5")
        );
        assert_eq!(Entry { id: 1, value: &[1, 2, 3] }.text(Type::Integer), None);
    }

    #[test]
    fn an_instance_alone_is_its_resources_and_several_are_refused() {
        assert_eq!(read(b"\x03\x00\xc1\x09\x64"), Some(vec![Entry { id: 9, value: b"\x64" }]));
        assert_eq!(read(b"\x03\x00\xc1\x09\x64\x03\x01\xc1\x09\x64"), None);
        let mut nested = Vec::new();
        for _ in 0..10_000 {
            let inner = std::mem::take(&mut nested);
            entry(&mut nested, INSTANCE, 0, inner);
            assert_eq!(read(&nested).is_some(), nested.len() == 2, "an instance within another");
        }
        // Resource 6 has two values.
        assert_eq!(read(b"\x86\x06\x41\x00\x01\x41\x01\x05"), None);
    }
}
