//! Checks of requirements in their scenario.

use super::{Class, ClassView, Required, Scenario};
use crate::keys::{Check, Fault, require};

/// Checks that the requirements can be measured in this network.
pub(super) fn check(s: &Scenario) -> Check {
    let views = s.read_classes()?;
    let key = |figure: Required| format!("require.{}", figure.key());
    if s.require.in_time.is_some()
        && let Some(view) = views.iter().find(|view| view.scenario.workload.deadline.0 == 0)
    {
        let remedy = match view.name.as_str() {
            "" => "set workload.deadline".to_owned(),
            name => format!(
                "class {name} has none: set workload.deadline, or state [class.require] for those that have one"
            ),
        };
        return Err(Fault::new(key(Required::InTime), format!("needs a deadline; {remedy}")));
    }
    measurable(s, &key)?;
    s.class.iter().zip(&views).try_for_each(|(class, view)| of_class(class, view))
}

/// Fails at figures that this network does not have.
fn measurable(s: &Scenario, key: &dyn Fn(Required) -> String) -> Check {
    let (own, n) = (&s.require, &s.network);
    let is_mesh = n.mesh().is_some();
    require(
        own.bytes.is_none() || !is_mesh,
        &key(Required::Bytes),
        "is not measured in a mesh; state transmissions or power_mw",
    )?;
    require(
        own.left_to_others.is_none() || !n.is_limited_by_radio(),
        &key(Required::LeftToOthers),
        "needs a bottleneck, which meshes and cells of LoRaWAN and NB-IoT do not have",
    )?;
    require(
        own.power_mw.is_none() || n.is_limited_by_radio(),
        &key(Required::Power),
        "is known of LoRaWAN, NB-IoT and meshes only; state transmissions or bytes",
    )
}

fn of_class(class: &Class, view: &ClassView) -> Check {
    let key = |figure: Required| format!("class.{}.require.{}", class.name, figure.key());
    let own = &view.scenario;
    require(
        own.require.in_time.is_none() || own.workload.deadline.0 > 0,
        &key(Required::InTime),
        "needs a deadline; set deadline in [class.workload]",
    )?;
    for figure in [Required::LeftToOthers, Required::Power] {
        require(
            own.require.value(figure).is_none(),
            &key(figure),
            "is a figure of all devices together; state it in [require]",
        )?;
    }
    measurable(own, &key)
}
