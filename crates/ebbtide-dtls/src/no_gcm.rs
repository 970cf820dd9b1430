//! In place of `gcm` without that feature: no suite that needs it is used.

pub(crate) const fn seal(_: &[u8; 16], _: &[u8; 12], _: &[u8], _: &mut [u8], _: &mut [u8]) -> bool {
    false
}

pub(crate) const fn open(_: &[u8; 16], _: &[u8; 12], _: &[u8], _: &mut [u8], _: &[u8]) -> bool {
    false
}
