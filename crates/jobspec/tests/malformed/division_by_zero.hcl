job "web" {
  group "server" {
    count = 1 / 0
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
