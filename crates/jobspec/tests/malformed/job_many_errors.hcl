job "web" {
  type     = "daemon"
  priority = 101
  group "server" {
    count = -1

    restart {
      attempts = 5
      interval = "10s"
      delay    = "15s"
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      kill_signal = "INT"
    }
  }
}
