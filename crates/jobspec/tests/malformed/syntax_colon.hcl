job "web" {
  type: "service"
}
