//! What several files of tests share.

pub(crate) mod child_process;
pub(crate) mod counting;
pub(crate) mod dtls;
pub(crate) mod errors;
pub(crate) mod eventually;
pub(crate) mod many_clients;
pub(crate) mod relay;
pub(crate) mod stream;
pub(crate) mod wire_words;
