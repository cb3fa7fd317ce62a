# Written for `brew install --formula dist/homebrew/fleet-update.rb`. `post_install` runs in a sandbox as
# the user and must touch neither services nor homes: the caveats say what to run instead.
class FleetUpdate < Formula
  desc "Migrates every profile home of a fleet, restarts what serves the old state"
  homepage "https://github.com/fleet-update/fleet-update"
  url "https://github.com/fleet-update/fleet-update/releases/download/v0.1.0/fleet-update-0.1.0.tar.gz"
  # Of the archive that dist/release makes: it writes a copy of this file with that sum.
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args
    man8.install "man/update.8"
    man5.install Dir["man/fleet-update-*.5"]
    bash_completion.install "completions/update.bash" => "update"
    zsh_completion.install "completions/_update"
    fish_completion.install "completions/update.fish"
  end

  service do
    run [opt_bin/"update", "--trigger", "cron"]
    run_type :cron
    cron "17 4 * * *"
  end

  def caveats
    <<~TEXT
      Nothing was migrated or restarted. To look, and then to do it:
        update plan
        update
      To have it done every day:
        brew services start fleet-update
    TEXT
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/update --version")
    system bin/"update", "rehearse"
  end
end
