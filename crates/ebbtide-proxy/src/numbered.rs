//! Numbers in the paths of what clients have created, and who may change it.

use crate::system;
use ebbtide::Response;
use ebbtide::server::Call;
use std::collections::BTreeMap;

/// The last segment of a path.
pub(crate) fn segment(number: u32) -> String {
    format!("{number:08x}")
}

/// The number in a segment of a path.
pub(crate) fn read(segment: &str) -> Option<u32> {
    u32::from_str_radix(segment, 16).ok().filter(|number| self::segment(*number) == segment)
}

/// A number that strangers cannot guess, and that nothing former is likely to have had.
pub(crate) fn free<T>(taken: &BTreeMap<u32, T>) -> u32 {
    let mut number = system::seed() as u32;
    while taken.contains_key(&number) {
        number = number.wrapping_add(1);
    }
    number
}

/// The identity that the sender of a request has proved.
pub(crate) fn owner(call: &Call<'_>) -> Option<Vec<u8>> {
    let shown = || call.certificate().or_else(|| call.raw_public_key());
    call.identity().or_else(shown).map(<[u8]>::to_vec)
}

/// Lets the owner alone change something, if there is one (RFC 9176 section 7.5: the one that came first).
///
/// # Errors
///
/// The answer for all others.
pub(crate) fn permit(owned_by: Option<&Vec<u8>>, call: &Call<'_>) -> Result<(), Response> {
    let is_permitted = owned_by.is_none_or(|known| owner(call).as_ref() == Some(known));
    if is_permitted { Ok(()) } else { Err(crate::outcome::not_owner()) }
}
