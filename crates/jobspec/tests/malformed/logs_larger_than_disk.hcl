job "web" {
  group "server" {
    ephemeral_disk {
      size = 50
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
