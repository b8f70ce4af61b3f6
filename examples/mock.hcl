# A task that starts no process at all: for trying things out, and for tests of the cluster itself.

job "mock" {
  type = "batch"

  group "pretend" {
    count = 3

    # Not worth another try when it fails.
    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "pretend" {
      driver = "mock_driver"

      config {
        # Runs for this long, prints this, then ends with this code.
        run_for       = "500ms"
        stdout_string = "pretending to work\n"
        exit_code     = 0
      }

      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
