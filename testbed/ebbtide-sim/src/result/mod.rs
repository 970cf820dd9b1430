//! The home of figures: what replications have come to, cell by cell.
//!
//! A [`Cell`] holds the figures of all replications of one control in one setting. [`summarise`]
//! computes them from records, as the tables in [`metrics`] say; the JSON document, the page and the
//! terminal show what these tables hold.

mod breaking_point;
mod cell;
mod cell_spec;
mod classes;
mod course;
mod curve;
mod document;
mod figures;
mod flow_cell;
mod flows;
mod judged;
mod limit;
mod link_cell;
mod mesh_nodes;
mod metric;
pub mod metrics;
mod model;
mod phases;
mod pooled;
mod results;
mod sample;
mod unreachable;
mod wire;

pub use crate::record::{FlowSeries, Handshakes, Series};
pub use crate::stats::Summary;
pub use breaking_point::{BreakingPoint, MetSide, UntilPoint, answer};
pub use cell::summarise;
pub use cell_spec::CellSpec;
pub(crate) use cell_spec::{hash_of, identity};
pub use course::{CoarseTime, Course, CoursePoint, CourseQuantity};
pub use curve::{CurveLine, CurvePoint, MeanShare, curves};
pub use document::{Origin, document};
pub use figures::{Figures, Value};
pub use flows::{FlowCell, FlowFigures};
pub use judged::{judge_cells, judge_classes, judge_phases};
pub use limit::physical_limit_s;
pub use metric::{Better, Column, Format, Group, Metric, Unit};
pub use metrics::{Described, all_figures};
pub use model::{Cell, Comparison, LinkCell, MeshNode, PacketCounts, Packets, Report};
pub use results::{CellResult, PerRun, Results, VERSION};
