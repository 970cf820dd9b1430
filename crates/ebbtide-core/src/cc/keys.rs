//! The settings that each control reads.

use super::Algorithm;

impl Algorithm {
    /// The keys of the settings that apply to this control. [`ControlConfig::set`](super::ControlConfig::set)
    /// refuses all others.
    #[must_use]
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Default | Self::DefaultB | Self::DefaultFb1 | Self::DefaultFb2 => {
                &["bound", "ack-timeout", "nstart"]
            }
            Self::LinuxRto | Self::PeakHopper => {
                &["floor", "bound", "initial-rto", "granularity", "nstart"]
            }
            Self::CocoaPlus => &[
                "code",
                "bound",
                "ageing",
                "small-ageing-factor",
                "initial-rto",
                "granularity",
                "nstart",
            ],
            Self::Cocoa | Self::CocoaFb1 | Self::CocoaFb2 => {
                &["bound", "ageing", "small-ageing-factor", "initial-rto", "granularity", "nstart"]
            }
            Self::Cocoa01 => &[
                "bound",
                "ageing",
                "small-ageing-factor",
                "history",
                "initial-rto",
                "granularity",
                "nstart",
            ],
            Self::Slow
            | Self::FastSlow
            | Self::FasorK4
            | Self::Fasor
            | Self::FasorToken
            | Self::FasorOption => &["bound", "initial-rto", "granularity", "nstart"],
            Self::Rcoap => &[
                "ipi-min",
                "start-interval",
                "in-flight",
                "nstart",
                "initial-rto",
                "floor",
                "bound",
                "ageing",
                "granularity",
            ],
            Self::Ebb => &[
                "mark",
                "copies",
                "probe-growth",
                "initial-rto",
                "margin",
                "dither",
                "ageing",
                "bound",
                "nstart",
                "granularity",
            ],
        }
    }
}
