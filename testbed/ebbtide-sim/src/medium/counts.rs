//! The fates of frames; every frame is counted exactly once.

use super::{FrameOutcome, Reception};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// The frames of a station, by fate.
///
/// Two sums hold at any time: `accepted` = `sent` + `no_ack` + `no_access` + the current frame and
/// those that wait for their retransmission, and `transmitted` = `received` + `repeated` +
/// `collided` + `faded` + `deaf` + `asleep` + the one on the air.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames that the upper layer handed over.
    pub accepted: u64,
    /// Frames that were acknowledged, or sent without requesting an acknowledgement.
    pub sent: u64,
    /// Frames given up because no acknowledgement arrived.
    pub no_ack: u64,
    /// Frames given up because the channel was busy.
    pub no_access: u64,
    /// Channel assessments.
    pub assessments: u64,
    /// Channel assessments that found it busy.
    pub busy: u64,
    /// Transmissions of frames, including retransmissions but not acknowledgements.
    pub transmitted: u64,
    /// Frames that arrived for the first time.
    pub received: u64,
    /// Frames that arrived again.
    pub repeated: u64,
    /// Frames lost to another transmission at the receiver.
    pub collided: u64,
    /// Frames that were too weak.
    pub faded: u64,
    /// Frames that arrived while the receiver was transmitting.
    pub deaf: u64,
    /// Frames that arrived while the receiver's radio was off.
    pub asleep: u64,
    /// Acknowledgements transmitted to this station.
    pub acks: u64,
    /// Acknowledgements that did not reach it.
    pub acks_lost: u64,
}

impl FrameCounts {
    /// Counts a transmission that ended; `again` if its frame had arrived before.
    pub(super) fn ended(&mut self, reception: Reception, again: bool) {
        match reception {
            Reception::Received if again => self.repeated += 1,
            Reception::Received => self.received += 1,
            Reception::Collided => self.collided += 1,
            Reception::Faded => self.faded += 1,
            Reception::Deaf => self.deaf += 1,
            Reception::Asleep => self.asleep += 1,
        }
    }

    /// Counts a frame that was finished.
    pub(super) fn done(&mut self, outcome: FrameOutcome) {
        match outcome {
            FrameOutcome::Sent => self.sent += 1,
            FrameOutcome::NoAck => self.no_ack += 1,
            FrameOutcome::ChannelAccessFailure => self.no_access += 1,
        }
    }
}

impl AddAssign for FrameCounts {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.sent += other.sent;
        self.no_ack += other.no_ack;
        self.no_access += other.no_access;
        self.assessments += other.assessments;
        self.busy += other.busy;
        self.transmitted += other.transmitted;
        self.received += other.received;
        self.repeated += other.repeated;
        self.collided += other.collided;
        self.faded += other.faded;
        self.deaf += other.deaf;
        self.asleep += other.asleep;
        self.acks += other.acks;
        self.acks_lost += other.acks_lost;
    }
}
