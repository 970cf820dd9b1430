# `nix run github:ebbtide/ebbtide -- list`, or `nix build` in a clone.
{
  description = "CoAP client and server, and a testbed for congestion controls";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: rec {
        ebbtide = pkgs.rustPlatform.buildRustPackage {
          pname = "ebbtide";
          version = (nixpkgs.lib.importTOML ./Cargo.toml).workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "-p" "ebbtide-cli" ];
          # They need network namespaces and other implementations: ci.sh runs them.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            $out/bin/ebbtide man man
            installManPage man/*.1
            installShellCompletion --cmd ebbtide \
              --bash <($out/bin/ebbtide completions bash) \
              --zsh <($out/bin/ebbtide completions zsh) \
              --fish <($out/bin/ebbtide completions fish)
          '';
          meta = {
            description = "CoAP client and server, and a testbed for congestion controls";
            homepage = "https://github.com/ebbtide/ebbtide";
            license = [ nixpkgs.lib.licenses.asl20 nixpkgs.lib.licenses.mit ];
            mainProgram = "ebbtide";
          };
        };
        default = ebbtide;
      });

      devShells = each (pkgs: {
        default = pkgs.mkShell { packages = [ pkgs.cargo pkgs.rustc pkgs.clippy pkgs.rustfmt pkgs.python3 pkgs.wireshark-cli ]; };
      });
    };
}
