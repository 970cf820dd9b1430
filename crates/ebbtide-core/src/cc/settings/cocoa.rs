//! The settings of the CoCoA family.

/// The settings of the CoCoA family.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CocoaSettings {
    /// The factor by which a small estimate grows when it ages: 2; SOCNE14 prints 16.
    pub small_ageing_factor: u16,
    /// Which description of CoCoA+ `cocoa-plus` follows.
    pub code: CocoaCode,
    /// The number of values over which `cocoa-01` smooths its overall RTO: 1 (off) to 4.
    pub history: u8,
}

/// Descriptions of CoCoA+.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum CocoaCode {
    /// WiMob17's text.
    #[default]
    Paper,
    /// Its authors' code for Contiki (2015, draft-bormann-core-cocoa-02), which differs from the text:
    /// timeouts are not dithered; an estimate below one second that is idle for 16 times its length
    /// becomes one second; weak samples come from any number of retransmissions and weigh 3/4; after more
    /// than three retransmissions without a strong sample the strong estimator starts again; the backoff
    /// factors are 2.5, 2 and 1.5.
    Contiki,
}

impl CocoaSettings {
    pub(in crate::cc) const DEFAULT: Self =
        Self { small_ageing_factor: 2, code: CocoaCode::Paper, history: 1 };
}
