//! The life of a device: it registers, is asked by its server, updates its registration and deregisters.

use crate::objects::{Device, Id, LIFETIME, PACKAGE_URI, UPDATE};
use crate::security::Security;
use ebbtide::{Client, Code, ContentFormat, Error, Request, Uri};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

impl Device {
    /// Registers with the server of object 0, serves it, updates the registration, and deregisters when
    /// `stop` is ready.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be reached or refuses the device.
    pub async fn run(
        &self,
        security: &Security,
        mut commands: UnboundedReceiver<Id>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let client = Client::serving(self.router(), security.client_config())?;
        let (mut stop, mut registration) = (std::pin::pin!(stop), None::<Uri>);
        loop {
            let lifetime = self.values().get(&LIFETIME).and_then(|value| value.parse().ok());
            let lifetime: u64 = lifetime.unwrap_or(300);
            let to = match &registration {
                Some(registered) => registered.join(&format!("?lt={lifetime}"))?,
                None => format!(
                    "{}/rd?ep={}&lwm2m=1.1&b=U&lt={lifetime}",
                    security.server, self.endpoint
                )
                .parse()?,
            };
            let links = if registration.is_none() { "</1/0>,</3/0>,</5/0>,</3303/0>" } else { "" };
            let request = Request::post(&to)?.payload(links).format(ContentFormat::LINK_FORMAT);
            let response = client.request(request).await?;
            match response.code() {
                Code::CREATED => registration = to.location(&response),
                // The server has forgotten it.
                Code::NOT_FOUND if registration.take().is_some() => continue,
                _ => drop(response.error_for_status()?),
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(lifetime) * 4 / 5) => {}
                Some(id) = commands.recv() => self.carry_out(&client, id).await?,
                () = stop.as_mut() => break,
            }
        }
        if let Some(registered) = registration {
            client.delete(&registered).await?;
        }
        Ok(())
    }

    async fn carry_out(&self, client: &Client, id: Id) -> Result<(), Error> {
        let uri = self.values().get(&PACKAGE_URI).cloned().unwrap_or_default();
        match id {
            PACKAGE_URI => {
                self.set([((5, 0, 3), "1")]);
                let image = client.get(&*uri).await?.error_for_status()?;
                self.downloaded(image.body());
            }
            UPDATE => self.set([((3, 0, 3), "1.1"), ((5, 0, 3), "0"), ((5, 0, 5), "1")]),
            // The registration is updated next, whatever else there is to do.
            _ => {}
        }
        Ok(())
    }
}
