//! A campaign of experiments with its results.

use ebbtide_sim::result::Results;
use ebbtide_sim::run::Campaign;

/// The cells of a campaign, and what they have come to.
#[derive(Copy, Clone)]
pub(crate) struct MeasuredCampaign<'m> {
    pub(crate) campaign: &'m Campaign,
    pub(crate) results: &'m Results,
}
