job "web" {
  group "server" {
    count = 1.5
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
